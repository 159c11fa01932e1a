"""The windows of a page that are in blocks, and their rows by state schema."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import redis

from controlplane.wire import keys
from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.state_schema import convert_rows, schema_named, schema_names
from controlplane.wire.query import Computation
from controlplane.wire.results.blocks import Ref, decoded
from controlplane.wire.results.places import members_of, place_of
from controlplane.wire.results.rows import key_columns, section_of


@dataclass(frozen=True, slots=True)
class Wanted:
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


def rows_of(computation: Computation, query: int, held: StoredBlocks, wanted: Wanted) -> BlockRows:
    """Return the rows of the wanted windows, whatever state schema they were written in."""
    parts: dict[str, list[Any]] = {}
    for ref, data in held.blocks:
        for name, rows in decoded(data):
            selected = _within(rows, ref, held, wanted)
            if len(selected):
                parts.setdefault(name, []).append(_as_of(selected, query, ref))
    tables = _joined(computation, parts)
    slots = schema_names(layout_of(computation))[0]
    if slots not in tables:
        return BlockRows({}, {})
    return _near_end(tables, slots, held, wanted)


def _within(rows: Any, ref: Ref, held: StoredBlocks, wanted: Wanted) -> Any:
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
    tables: Mapping[str, Any], slots: str, held: StoredBlocks, wanted: Wanted
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


def _of_places(tables: Mapping[str, Any], held: StoredBlocks, wanted: Wanted) -> BlockRows:
    result, members = {}, {}
    for name, table in tables.items():
        every = members_of(table, key_columns(schema_named(name)))
        places = [place_of(member) for member in every]
        wants = [place > held.moved and wanted.is_wanted(place) for place in places]
        selected = np.array(wants, np.bool_)
        members[name] = [member for member, taken in zip(every, selected, strict=True) if taken]
        result[name] = table if selected.all() else table.filter(pa.array(selected))
    return BlockRows(result, members)
