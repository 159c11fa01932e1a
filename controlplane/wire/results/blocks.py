"""Blocks: windows that began and ended within one micro-batch, many in one value.

Such a window is complete when a node emits it, so it needs no row that is replaced later. A block
is written once and read by all queries with the same computation: each refers to it (`Ref`), and
the block leaves Redis with its last reference. Its name is the hash of its bytes, so that a replay
writes the same block again.
"""

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import redis

from controlplane.wire import keys
from controlplane.wire.aggregates.state_schema import (
    StateSchema,
    from_bytes,
    schema_named,
    to_bytes,
)
from controlplane.wire.results.places import members_of, start_bytes, start_of
from controlplane.wire.results.rows import SLOTS, key_columns, section_of
from controlplane.wire.results.scripts import PUT

# Bytes of rows per block, about: a page of windows reads some whole blocks.
BLOCK_BYTES: Final = 512 << 10
ID_BYTES: Final = 16
# Expiry of a block without references: its writer was killed in between.
_ORPHAN_S: Final = 3_600
# First and last start of the windows, how many there are, the query's incarnation, the batch.
_REF: Final = struct.Struct(">8s8sIIQ")
_SIZE: Final = struct.Struct(">Q")
# Bytes of the names and lengths of tables.
_NAMES_HEAD: Final = struct.Struct("<I")
_CODEC: Final = "zstd"


@dataclass(frozen=True, slots=True)
class Block:
    """Complete windows of one computation, as the tasks of some queries have them.

    `recipients`: query and incarnation of each; `tables`: rows by state schema, of any of these
    queries.
    """

    recipients: Sequence[tuple[int, int]]
    tables: Sequence[tuple[str, StateSchema, Any]]


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference of a query to a block; `first_ms`, `last_ms`: starts of its windows.

    `after_ms`: only windows that start later; earlier ones were frozen when the block was written.
    """

    block: bytes
    first_ms: int
    last_ms: int
    windows: int
    incarnation: int
    batch: int
    after_ms: int | None = None

    def to_bytes(self) -> bytes:
        """Return all but `block` and `after_ms`."""
        first, last = start_bytes(self.first_ms), start_bytes(self.last_ms)
        return _REF.pack(first, last, self.windows, self.incarnation, self.batch)

    @classmethod
    def from_bytes(cls, block: bytes, data: bytes) -> "Ref":
        """Return the reference that `to_bytes` wrote; the text after it is `after_ms`."""
        first, last, windows, incarnation, batch = _REF.unpack_from(data)
        after = data[_REF.size :]
        return cls(block, start_of(first), start_of(last), windows, incarnation, batch,
                   int(after) if after else None)  # fmt: skip


def pack_tables(changes: Iterable[tuple[str, StateSchema, Any]]) -> bytes:
    """Return tables of changed windows as bytes, without empty tables."""
    parts = [(name, to_bytes(rows)) for name, _, rows in changes if len(rows)]
    head = json.dumps([[name, len(data)] for name, data in parts]).encode()
    return b"".join((_NAMES_HEAD.pack(len(head)), head, *(data for _, data in parts)))


def unpack_tables(data: bytes) -> Iterator[tuple[str, Any]]:
    """Yield the name of the state schema and the rows of each table that `pack_tables` wrote."""
    (size,) = _NAMES_HEAD.unpack_from(data)
    offset = _NAMES_HEAD.size + size
    for name, length in json.loads(data[_NAMES_HEAD.size : offset]):
        yield name, from_bytes(schema_named(name), data[offset : offset + length])
        offset += length


def encoded(tables: Iterable[tuple[str, StateSchema, Any]]) -> bytes:
    """Return the bytes of a block."""
    data = pack_tables(tables)
    return _SIZE.pack(len(data)) + pa.compress(data, _CODEC, asbytes=True)


def decoded(data: bytes) -> list[tuple[str, Any]]:
    """Return the tables of a block with the names of their state schemas."""
    (size,) = _SIZE.unpack_from(data)
    raw = pa.decompress(data[_SIZE.size :], size, _CODEC, asbytes=True)
    return list(unpack_tables(raw))


def extent_of(tables: Sequence[tuple[str, StateSchema, Any]]) -> tuple[int, int, int]:
    """Return the first and last start (ms) of the windows in tables, and how many rows they have.

    `tables`: the slots of the windows first.
    """
    _, _, slots = tables[0]
    starts = np.asarray(slots["pane"])
    return int(starts.min()), int(starts.max()), len(starts)


def put(client: "redis.Redis", cluster: str, datas: Sequence[bytes]) -> list[bytes]:
    """Write blocks that queries are going to refer to; return their names."""
    names = [hashlib.blake2b(data, digest_size=ID_BYTES).digest() for data in datas]
    script = client.register_script(PUT)
    pipe = client.pipeline(transaction=False)
    for name, data in zip(names, datas, strict=True):
        script(keys=[keys.block_key(cluster, name)], args=[data, _ORPHAN_S], client=pipe)
    if names:
        pipe.execute()
    return names


def members_in(data: bytes) -> list[bytes]:
    """Return the members of the windows in a block, for the query that wrote it."""
    return [
        member
        for name, rows in decoded(data)
        if section_of(name) == SLOTS
        for member in members_of(rows, key_columns(schema_named(name)))
    ]
