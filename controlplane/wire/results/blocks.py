"""Blocks: windows that began and ended within one micro-batch, many in one value.

Such a window is complete when a node emits it, so it needs no row that is replaced later. A block
is written once and read by all queries with the same computation: each refers to it (`Ref`), and
the block leaves Redis with its last reference. Its name is the hash of its bytes, so that a replay
writes the same block again.
"""

import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import redis

from controlplane.wire import keys
from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.state_schema import (
    StateSchema,
    convert_rows,
    from_bytes,
    schema_named,
    schema_names,
    to_bytes,
)
from controlplane.wire.query import Computation
from controlplane.wire.results.places import members_of, place_of, start_bytes, start_of
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
class WindowBlock:
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


def encode_tables(tables: Iterable[tuple[str, StateSchema, Any]]) -> bytes:
    """Return the bytes of a block."""
    data = pack_tables(tables)
    return _SIZE.pack(len(data)) + pa.compress(data, _CODEC, asbytes=True)


def decode_tables(data: bytes) -> list[tuple[str, Any]]:
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
        for name, rows in decode_tables(data)
        if section_of(name) == SLOTS
        for member in members_of(rows, key_columns(schema_named(name)))
    ]


@dataclass(frozen=True, slots=True)
class WindowSelection:
    """A range of windows: `first_ms` ≤ start ≤ `last_ms`, and `is_wanted` of their places.

    At least `limit` of them from one end, if there are so many.
    """

    first_ms: int
    last_ms: int
    is_wanted: Callable[[bytes], bool]
    limit: int
    newest_first: bool


@dataclass(frozen=True, slots=True)
class BlockRows:
    """Rows of blocks by schema name: a table with `batch`, and the member of each row."""

    tables: Mapping[str, Any]
    members: Mapping[str, Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class StoredBlocks:
    """The blocks of a query that were read, and which windows have left Redis.

    `moved`: the last place that has left, `moved_to_ms`: the newest start up to which all have.
    """

    blocks: Sequence[tuple[Ref, bytes]] = ()
    moved: bytes = b""
    moved_to_ms: int | None = None


def read_overlapping(
    client: "redis.Redis", cluster: str, query: int, starts: Sequence[int]
) -> StoredBlocks:
    """Return the blocks of a query that may have windows with these starts (ms)."""
    result = cast("dict[bytes, bytes]", client.hgetall(keys.blocks_key(cluster, query)))
    refs = [Ref.from_bytes(name, data) for name, data in result.items()]
    near = [ref for ref in refs if any(ref.first_ms <= start <= ref.last_ms for start in starts)]
    pipe = client.pipeline(transaction=False)
    for ref in near:
        pipe.hget(keys.block_key(cluster, ref.block), "data")
    pipe.hmget(keys.rows_key(cluster, query), "moved", "moved_to")
    *datas, (moved, moved_to) = pipe.execute()
    blocks = [(ref, data) for ref, data in zip(near, datas, strict=True) if data]
    return StoredBlocks(blocks, moved or b"", None if moved_to is None else int(moved_to))


def rows_of(
    computation: Computation, query: int, held: StoredBlocks, wanted: WindowSelection
) -> BlockRows:
    """Return the rows of the wanted windows, whatever state schema they were written in."""
    parts: dict[str, list[Any]] = {}
    for ref, data in held.blocks:
        for name, rows in decode_tables(data):
            selected = _within(rows, ref, held, wanted)
            if len(selected):
                parts.setdefault(name, []).append(_as_of(selected, query, ref))
    tables = _joined(computation, parts)
    slots = schema_names(layout_of(computation))[0]
    if slots not in tables:
        return BlockRows({}, {})
    return _near_end(tables, slots, held, wanted)


def _within(rows: Any, ref: Ref, held: StoredBlocks, wanted: WindowSelection) -> Any:
    """Return the rows in the range that this query has in Redis."""
    limits = [ms for ms in (ref.after_ms, held.moved_to_ms) if ms is not None]
    first = max(wanted.first_ms, *(ms + 1 for ms in limits)) if limits else wanted.first_ms
    starts = np.asarray(rows["pane"])
    selected = (starts >= first) & (starts <= wanted.last_ms)
    return rows if selected.all() else rows.filter(pa.array(selected))


def _as_of(rows: Any, query: int, ref: Ref) -> Any:
    """Return rows as those of this query."""
    for name, value in (("query", query), ("run", ref.incarnation)):
        column_index = rows.schema.get_field_index(name)
        rows = rows.set_column(column_index, name, pa.array(np.full(len(rows), value, np.int64)))
    return rows.append_column("batch", pa.array(np.full(len(rows), ref.batch, np.int64)))


def _joined(computation: Computation, parts: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return one table for each state schema that the computation has now."""
    result: dict[str, list[Any]] = {}
    now = {section_of(name): name for name in schema_names(layout_of(computation))}
    for name, tables in parts.items():
        wanted = now.get(section_of(name))
        if wanted is None:
            continue
        for table in tables:
            rows, batch = table.drop_columns(["batch"]), table["batch"]
            same = rows if name == wanted else convert_rows(rows, name, wanted)
            result.setdefault(wanted, []).append(same.append_column("batch", batch))
    return {name: pa.concat_tables(tables).combine_chunks() for name, tables in result.items()}


def _near_end(
    tables: Mapping[str, Any], slots: str, held: StoredBlocks, wanted: WindowSelection
) -> BlockRows:
    """Return the rows of at least so many windows from one end, if there are so many."""
    starts = np.asarray(tables[slots]["pane"])
    order = np.sort(starts)[:: -1 if wanted.newest_first else 1]
    rows = wanted.limit
    while True:
        # Whole windows: all rows with the last of these starts are included.
        edge = order[min(rows, len(order)) - 1]
        near = {name: _up_to(table, edge, wanted.newest_first) for name, table in tables.items()}
        result = _of_places(near, held, wanted)
        places = {place_of(member) for member in result.members.get(slots, ())}
        if rows >= len(order) or len(places) > wanted.limit:
            return result
        rows *= 2


def _up_to(table: Any, edge: int, newest_first: bool) -> Any:
    starts = np.asarray(table["pane"])
    selected = starts >= edge if newest_first else starts <= edge
    return table if selected.all() else table.filter(pa.array(selected))


def _of_places(tables: Mapping[str, Any], held: StoredBlocks, wanted: WindowSelection) -> BlockRows:
    result, members = {}, {}
    for name, table in tables.items():
        every = members_of(table, key_columns(schema_named(name)))
        places = [place_of(member) for member in every]
        wants = [place > held.moved and wanted.is_wanted(place) for place in places]
        selected = np.array(wants, np.bool_)
        members[name] = [member for member, taken in zip(every, selected, strict=True) if taken]
        result[name] = table if selected.all() else table.filter(pa.array(selected))
    return BlockRows(result, members)
