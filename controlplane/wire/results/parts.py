"""Parts of windows: the accumulators of one incarnation, task and stream of a query, as bytes.

A window with several parts, or with sketches, is merged again with each change. So a row of results
has the accumulators of its parts, each with its part (`places.py`) and the section of its schema:
slots, cells of sketches, or states of users' aggregates.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.aggregates.state_schema import convert_rows, schema_named, schema_names
from controlplane.wire.query import Computation
from controlplane.wire.results.places import PART_BYTES, members_of, whole_column
from controlplane.wire.results.rows import (
    HEAD,
    SLOTS,
    key_columns,
    number_of,
    pack_rows,
    section_of,
    unpack_rows,
    with_identity,
)

# Part, section, bytes of the accumulators.
ENTRY: Final = struct.Struct(f">{PART_BYTES}scI")
# The accumulators of a window by part and section.
Parts = dict[tuple[bytes, str], bytes]


def entry(part: bytes, section: str, data: bytes) -> bytes:
    """Return the accumulators of one part and section as they are in a row."""
    return b"".join((part, section.encode(), len(data).to_bytes(4, "big"), data))


def encode(parts: Mapping[tuple[bytes, str], bytes]) -> tuple[bytes, bytes | None]:
    """Return the slots of all parts, and their other accumulators, None for none."""
    slots = [entry(*place, data) for place, data in parts.items() if place[1] == SLOTS]
    others = [entry(*place, data) for place, data in parts.items() if place[1] != SLOTS]
    return b"".join(slots), b"".join(others) or None


def decode(*columns: bytes | None) -> Parts:
    """Return the parts of the columns of a row."""
    parts: Parts = {}
    for data in columns:
        offset = 0
        while data and offset < len(data):
            part, section, size = ENTRY.unpack_from(data, offset)
            offset += ENTRY.size
            parts[part, section.decode()] = bytes(data[offset : offset + size])
            offset += size
    return parts


def changed_parts(name: str, table: Any) -> Iterator[tuple[int, bytes, str, bytes]]:
    """Yield query, member, section and accumulators of each changed part; b"" deletes the part.

    `table`: rows of the state schema `name`; a negative count deletes.
    """
    form, section = schema_named(name), section_of(name)
    members, queries = members_of(table, key_columns(form)), np.asarray(table["query"])
    if section == SLOTS:
        deleted = np.asarray(table["s0"]) < 0
        values = pack_rows(name, form, table, [1] * len(members), 0)
        for query, member, value, is_deleted in zip(
            queries.tolist(), members, values, deleted.tolist(), strict=True
        ):
            yield query, member, section, b"" if is_deleted else value
        return
    rows: dict[tuple[int, bytes], list[int]] = {}
    for index, place in enumerate(zip(queries.tolist(), members, strict=True)):
        rows.setdefault(place, []).append(index)
    order = [index for some in rows.values() for index in some]
    sorted_table = table.take(pa.array(order, pa.int64())).combine_chunks()
    packed = pack_rows(name, form, sorted_table, [len(some) for some in rows.values()], 0)
    for (query, member), value in zip(rows, packed, strict=True):
        yield query, member, section, value


def tables_of(
    computation: Computation,
    windows: Sequence[Mapping[tuple[bytes, str], bytes]],
    names: Mapping[int, str],
) -> dict[str, Any]:
    """Return the parts of windows as input of `finalize`, with the window's index as its start.

    `names`: of state schemas, by number; parts of an older schema are converted.
    """
    owners = [(index, part) for index, window in enumerate(windows)
              for part, section in window if section == SLOTS]  # fmt: skip
    identity = _identity(owners)
    position = {owner: index for index, owner in enumerate(owners)}
    result: dict[str, Any] = {}
    for name in schema_names(layout_of(computation)):
        section, form = section_of(name), schema_named(name)
        entries = [(position[index, part], data) for index, window in enumerate(windows)
                   for (part, other), data in window.items() if other == section]  # fmt: skip
        if not entries:
            continue
        table, lengths = _decoded(name, [data for _, data in entries], names)
        if section == SLOTS:
            identity |= {column: table[column] for column in key_columns(form)}
        rows = pa.array(np.repeat([index for index, _ in entries], lengths))
        missing = {column: pa.chunked_array([whole_column(values).take(rows)])
                   for column, values in identity.items()
                   if column not in table.column_names}  # fmt: skip
        whole = with_identity(form, table, missing)
        result[name] = whole.append_column("batch", pa.array(np.zeros(len(whole), np.int64)))
    return result


def _identity(owners: Sequence[tuple[int, bytes]]) -> dict[str, Any]:
    data = np.frombuffer(b"".join(part for _, part in owners), np.uint8)
    parts = data.reshape(len(owners), PART_BYTES)
    stream = np.ascontiguousarray(parts[:, 8:]).view(">u8").reshape(-1) ^ np.uint64(1 << 63)
    return {
        "query": pa.array(np.zeros(len(owners), np.int64)),
        "run": pa.array(_numbers(parts[:, :4])),
        "task": pa.array(_numbers(parts[:, 4:8])),
        "stream": pa.array(stream.astype(np.uint64).view(np.int64)),
        "pane": pa.array([index for index, _ in owners], pa.int64()),
    }


def _numbers(part: Any) -> Any:
    return np.ascontiguousarray(part).view(">u4").reshape(-1).astype(np.int64)


def _decoded(name: str, values: Sequence[bytes], names: Mapping[int, str]) -> tuple[Any, list[int]]:
    """Return the columns of accumulators in the present schema, and the rows of each."""
    numbers = [HEAD.unpack_from(value)[1] for value in values]
    tables, order, lengths = [], [], [0] * len(values)
    for number in sorted({*numbers}):
        indexes = [index for index, other in enumerate(numbers) if other == number]
        written = name if number == number_of(name) else names[number]
        some = [values[index] for index in indexes]
        table, sizes, _ = unpack_rows(written, schema_named(written), some)
        # A column of the stream became wider: older rows have another type.
        tables.append(table if written == name else convert_rows(table, written, name))
        for index, size in zip(indexes, sizes, strict=True):
            lengths[index] = size
            order += [index] * size
    if len(tables) == 1:
        return tables[0], lengths
    by_value: Any = np.argsort(order, kind="stable")
    return pa.concat_tables(tables).take(by_value), lengths


def schema_numbers(names: Iterable[str]) -> dict[int, str]:
    """Return the numbers by which rows name state schemas."""
    return {number_of(name): name for name in names}
