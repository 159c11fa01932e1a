"""Tables of changed windows as bytes, and blocks: tables that several queries share.

A block is cut into pieces of `BLOCK_BYTES`, each with whole windows; several of them make up a row
of a node's output.
"""

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from controlplane.wire.aggregates.state_schema import (
    StateSchema,
    from_bytes,
    schema_named,
    to_bytes,
)
from controlplane.wire.results.rows import key_columns
from workers.pipeline.engine.complete_windows import WindowBlock
from workers.pipeline.engine.hashing import hash_rows

BLOCK_BYTES: Final = 2 << 20
# How many recipients, bytes of the block.
_HEAD: Final = struct.Struct("<IQ")
# Bytes of the names and lengths of tables.
_NAMES_HEAD: Final = struct.Struct("<I")
# Keys of one start are cut by this many bits of their hashes.
_BITS: Final = 6

Tables = Sequence[tuple[str, StateSchema, Any]]


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


def pack_blocks(blocks: Iterable[WindowBlock], limit: int) -> Iterator[bytes]:
    """Yield rows of about `limit` bytes at most, with some blocks each."""
    row: list[bytes] = []
    size = 0
    for block in blocks:
        for tables in split_tables(block.tables, BLOCK_BYTES):
            data = _packed(block.recipients, tables)
            if row and size + len(data) > limit:
                yield b"".join(row)
                row, size = [], 0
            row.append(data)
            size += len(data)
    if row:
        yield b"".join(row)


def _packed(recipients: Sequence[tuple[int, int]], tables: Tables) -> bytes:
    data = pack_tables(tables)
    return _HEAD.pack(len(recipients), len(data)) + np.array(recipients, np.int64).tobytes() + data


def unpack_blocks(payload: bytes) -> Iterator[tuple[list[tuple[int, int]], list[tuple[str, Any]]]]:
    """Yield the blocks of a row: query and incarnation of each recipient, and the tables."""
    offset = 0
    while offset < len(payload):
        count, size = _HEAD.unpack_from(payload, offset)
        offset += _HEAD.size
        pairs = np.frombuffer(payload, np.int64, 2 * count, offset).reshape(-1, 2)
        offset += pairs.nbytes
        recipients = [(query, incarnation) for query, incarnation in pairs.tolist()]
        yield recipients, list(unpack_tables(payload[offset : offset + size]))
        offset += size


def split_tables(tables: Tables, limit: int) -> Iterator[Tables]:
    """Yield tables in pieces of about `limit` bytes, no window in two of them."""
    if sum(rows.nbytes for _, _, rows in tables) <= limit:
        yield [(name, form, rows.combine_chunks()) for name, form, rows in tables]
        return
    starts = np.unique(np.concatenate([np.asarray(rows["pane"]) for _, _, rows in tables]))
    places = [_places(form, rows, starts) for _, form, rows in tables]
    weights = np.zeros(len(starts) << _BITS)
    for (_, _, rows), place in zip(tables, places, strict=True):
        weights += np.bincount(place, minlength=len(weights)) * (rows.nbytes / max(1, len(rows)))
    piece_of = ((np.cumsum(weights) - weights) // limit).astype(np.int64)
    for piece in np.unique(piece_of[weights > 0]).tolist():
        yield [
            (name, form, rows.filter(pa.array(selected)).combine_chunks())
            for (name, form, rows), place in zip(tables, places, strict=True)
            if (selected := piece_of[place] == piece).any()
        ]


def _places(form: StateSchema, rows: Any, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for the start and the key of each row, int64[rows]."""
    start = np.searchsorted(starts, np.asarray(rows["pane"])) << _BITS
    names = key_columns(form)
    if not names:
        return start
    hashes = hash_rows([rows[name] for name in names], len(rows))
    return np.asarray(start | (hashes >> np.uint64(64 - _BITS)).astype(np.int64))
