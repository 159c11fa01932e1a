"""Assembly of windows from their rows in Redis: merge of parts, finalized values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from controlplane.wire.aggregates.finalize import WindowRow, finalize
from controlplane.wire.aggregates.grouping import group_numbers
from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.state_schema import (
    PLACE,
    StateSchema,
    convert_rows,
    schema_named,
    schema_names,
)
from controlplane.wire.query import Computation
from controlplane.wire.results.blocks import BlockRows
from controlplane.wire.results.places import PART_BYTES, place_of, start_of, whole_column
from controlplane.wire.results.rows import (
    HEAD,
    SLOTS,
    key_columns,
    number_of,
    section_of,
    unpack_rows,
    with_identity,
)

# In the place of a place's number.
_LEFT_OUT: Final = -1


class StoredWindow(NamedTuple):
    """A window in Redis: its place, its members, and its values."""

    place: bytes
    members: tuple[bytes, ...]
    row: WindowRow


@dataclass(frozen=True, slots=True)
class Stored:
    """Members with their rows of each section, and the names of the state schemas of these rows."""

    members: Sequence[bytes]
    rows: Mapping[str, Sequence[bytes]]
    known: Mapping[int, str]


def places_of(computation: Computation, stored: Stored, block_rows: BlockRows) -> set[bytes]:
    """Return the places of all windows with rows."""
    slots = schema_names(layout_of(computation))[0]
    return {place_of(member) for member in (*stored.members, *block_rows.members.get(slots, ()))}


@dataclass(frozen=True, slots=True)
class QueryData:
    """The data of a query: its rows, its rows in blocks, and the requested places."""

    query: int
    stored: Stored
    block_rows: BlockRows
    places: Sequence[bytes]


def assemble_windows(
    computation: Computation, pieces: Sequence[QueryData], page_s: float | None = None
) -> list[list[StoredWindow]]:
    """Return for each piece of one computation the windows at its places, in their order."""
    numbers: list[dict[bytes, int]] = []
    count = 0
    for piece in pieces:
        numbers.append({place: count + index for index, place in enumerate(piece.places)})
        count += len(piece.places)
    if not count:
        return [[] for _ in pieces]
    slots = schema_names(layout_of(computation))[0]
    parts = [_tables(computation, pieces, numbers)]
    parts += [_numbered(piece.block_rows, own) for piece, own in zip(pieces, numbers, strict=True)]
    tables = _together(parts, slots, is_once=all(_is_once(piece, slots) for piece in pieces))
    # They come in no order, and their keys as people read them: the number of the place, which
    # stands for the start, distinguishes them.
    done = {row.start_ms: row for row in finalize(computation, tables, page_s)}
    return [_windows(piece, own, done) for piece, own in zip(pieces, numbers, strict=True)]


def _windows(
    piece: QueryData, numbers: Mapping[bytes, int], done: Mapping[int, WindowRow]
) -> list[StoredWindow]:
    members: dict[bytes, list[bytes]] = {}
    for member in piece.stored.members:
        members.setdefault(place_of(member), []).append(member)
    return [
        StoredWindow(
            place, tuple(members.get(place, ())), WindowRow(start_of(place), *done[number][1:])
        )
        for place, number in numbers.items()
    ]


def _is_once(piece: QueryData, slots: str) -> bool:
    """Return whether every part of a window is in one row or in one block."""
    in_blocks = piece.block_rows.members.get(slots, ())
    return not in_blocks or (
        frozenset(piece.stored.members).isdisjoint(in_blocks)
        and len({*in_blocks}) == len(in_blocks)
    )


def _numbered(block_rows: BlockRows, numbers: Mapping[bytes, int]) -> dict[str, Any]:
    """Return rows of blocks with the number of the place as their start."""
    tables = {}
    for name, table in block_rows.tables.items():
        places = [numbers.get(place_of(member), _LEFT_OUT) for member in block_rows.members[name]]
        column_index = table.schema.get_field_index("pane")
        tables[name] = _kept(table.set_column(column_index, "pane", pa.array(places, pa.int64())))
    return tables


def _kept(table: Any) -> Any:
    """Return the rows of places that are wanted."""
    wanted = np.asarray(table["pane"]) != _LEFT_OUT
    return table if wanted.all() else table.filter(pa.array(wanted))


def _together(parts: Sequence[Mapping[str, Any]], slots: str, *, is_once: bool) -> dict[str, Any]:
    """Return one table by state schema, with the newest batch of each part of a window."""
    result = {
        name: pa.concat_tables([part[name] for part in parts if name in part])
        for name in dict.fromkeys(name for part in parts for name in part)
    }
    if is_once:
        return result
    return {name: _newest(table, [*PLACE, *key_columns(schema_named(name))], name == slots)
            for name, table in result.items()}  # fmt: skip


def _newest(table: Any, part: Sequence[str], is_one: bool) -> Any:
    """Return the rows of the newest batch of each part; one row for slots."""
    groups = group_numbers(table, part)
    batch = np.asarray(table["batch"])
    best = np.full(groups.max() + 1, -1, np.int64)
    np.maximum.at(best, groups, batch)
    kept = batch == best[groups]
    if is_one:
        first = np.full(len(best), len(table), np.int64)
        np.minimum.at(first, groups[kept], np.flatnonzero(kept))
        kept &= np.arange(len(table)) == first[groups]
    return table.filter(pa.array(kept))


def _tables(
    computation: Computation, pieces: Sequence[QueryData], numbers: Sequence[Mapping[bytes, int]]
) -> dict[str, Any]:
    """Return the rows as input of `finalize`: by schema name, with the batch of each."""
    stored = _stored_together(pieces)
    identity = _identity(pieces, stored.members, numbers)
    result: dict[str, Any] = {}
    for name in schema_names(layout_of(computation)):
        values = stored.rows.get(section_of(name), ())
        if not any(values):
            continue
        form = schema_named(name)
        there = [index for index, value in enumerate(values) if value]
        some = [values[index] for index in there]
        table, lengths, batches = _decoded(name, form, some, stored.known)
        if section_of(name) == SLOTS:
            identity |= {column: table[column] for column in key_columns(form)}
        rows_of_each = np.repeat(there, lengths)
        owners = {column: pa.chunked_array([whole_column(all_).take(pa.array(rows_of_each))])
                for column, all_ in identity.items()
                if section_of(name) != SLOTS or column not in table.column_names}  # fmt: skip
        whole = with_identity(form, table, owners)
        result[name] = _kept(whole.append_column("batch", pa.array(np.repeat(batches, lengths))))
    return result


def _decoded(
    name: str, form: StateSchema, values: Sequence[bytes], known: Mapping[int, str]
) -> tuple[Any, list[int], list[int]]:
    """Return the columns of rows in the present schema, and their lengths and batches."""
    numbers = {HEAD.unpack_from(value)[1] for value in values}
    if numbers == {number_of(name)}:
        return unpack_rows(name, form, values)
    # A column of the stream became wider: older rows have another type.
    tables, lengths, batches = [], [0] * len(values), [0] * len(values)
    order: list[int] = []
    for number in sorted(numbers):
        indexes = [
            offset for offset, value in enumerate(values) if HEAD.unpack_from(value)[1] == number
        ]
        written = known[number]
        table, some, of = unpack_rows(
            written, schema_named(written), [values[index] for index in indexes]
        )
        tables.append(convert_rows(table, written, name))
        order += [index for index, length in zip(indexes, some, strict=True) for _ in range(length)]
        for offset, length, batch in zip(indexes, some, of, strict=True):
            lengths[offset], batches[offset] = length, batch
    by_value: Any = np.argsort(order, kind="stable")
    return pa.concat_tables(tables).take(by_value), lengths, batches


def _stored_together(pieces: Sequence[QueryData]) -> Stored:
    """Return the rows of all pieces in sequence; schema numbers are equal in all."""
    if len(pieces) == 1:
        return pieces[0].stored
    stored = [piece.stored for piece in pieces]
    sections = dict.fromkeys(section for item in stored for section in item.rows)
    rows = {
        section: [row for part in stored
                  for row in part.rows.get(section, (b"",) * len(part.members))]
        for section in sections
    }  # fmt: skip
    known = {number: name for element in stored for number, name in element.known.items()}
    return Stored([member for value in stored for member in value.members], rows, known)


def _identity(
    pieces: Sequence[QueryData], members: Sequence[bytes], numbers: Sequence[Mapping[bytes, int]]
) -> dict[str, Any]:
    """Return the identity columns of each row, with the number of the place as its start."""
    places = [own.get(place_of(item), _LEFT_OUT)
              for piece, own in zip(pieces, numbers, strict=True)
              for item in piece.stored.members]  # fmt: skip
    queries = np.repeat(
        np.array([piece.query for piece in pieces], np.int64),
        [len(piece.stored.members) for piece in pieces],
    )
    parts = np.frombuffer(b"".join(member[-PART_BYTES:] for member in members), np.uint8)
    parts = parts.reshape(len(members), PART_BYTES)
    stream = np.ascontiguousarray(parts[:, 8:]).view(">u8").reshape(-1) ^ np.uint64(1 << 63)
    return {
        "query": pa.array(queries),
        "run": pa.array(_numbers(parts[:, :4], ">u4")),
        "task": pa.array(_numbers(parts[:, 4:8], ">u4")),
        "stream": pa.array(stream.astype(np.uint64).view(np.int64)),
        "pane": pa.array(places, pa.int64()),
    }


def _numbers(part: Any, kind: str) -> Any:
    return np.ascontiguousarray(part).view(kind).reshape(-1).astype(np.int64)
