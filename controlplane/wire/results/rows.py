"""Rows of results as bytes: the hash value of one part of one window.

A row has a header (batch, number of its state schema, number of rows), then the columns of fixed
width, row by row in Arrow's format, then the others. Packing and unpacking depend on Arrow's types
only, so a new aggregate needs no change here.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa

from controlplane.wire.aggregates.state_schema import PLACE, StateSchema
from controlplane.wire.results.places import Bytes2D, raw_bytes, split, whole_column

# Batch, number of the state schema, rows.
HEAD: Final = struct.Struct(">QII")
_LENGTH: Final = struct.Struct(">I")
_NOTHING: Final = 0xFFFFFFFF
# The section of a row's slots: every part of a window has one, which alone has the key.
SLOTS: Final = "s"


def section_of(name: str) -> str:
    """Return the section that rows of a state schema belong to, one letter."""
    return name[0]


def number_of(name: str) -> int:
    """Return the number of a state schema in a row's header."""
    return crc32(name.encode())


def columns_of(name: str, form: StateSchema) -> list[str]:
    """Return the stored columns of a schema; member and slots determine the others."""
    kept = {*PLACE} if section_of(name) == SLOTS else {*PLACE, *key_columns(form)}
    return [column for column in form.arrow.names if column not in kept]


def key_columns(form: StateSchema) -> list[str]:
    """Return the key columns of a state schema."""
    return [column for column in form.identity if column[0] == "k" and column[1:].isdigit()]


def pack_rows(
    name: str, form: StateSchema, table: Any, lengths: Sequence[int], batch: int
) -> list[bytes]:
    """Return the rows of a table as bytes: the first `lengths[0]` together, and so on."""
    columns = [whole_column(table[column]) for column in columns_of(name, form)]
    fixed = _matrix([column for column in columns if _is_fixed(column.type)], len(table))
    # Each value of a column without a fixed width, with its length before it.
    other = [[*map(_cell, _encoded(item))] for item in columns if not _is_fixed(item.type)]
    number = number_of(name)
    if not other and len(lengths) == len(table):
        # Most values: one row with numbers only.
        heads = np.tile(np.frombuffer(HEAD.pack(batch, number, 1), np.uint8), (len(table), 1))
        return split(np.concatenate([heads, fixed], axis=1))
    data, width = fixed.tobytes(), fixed.shape[1]
    result, offset = [], 0
    for length in lengths:
        stop = offset + length
        head = HEAD.pack(batch, number, length)
        parts = [cell for cells in other for cell in cells[offset:stop]]
        result.append(b"".join((head, data[offset * width : stop * width], *parts)))
        offset = stop
    return result


def unpack_rows(
    name: str, form: StateSchema, values: Sequence[bytes]
) -> tuple[Any, list[int], list[int]]:
    """Return the columns that `pack_rows` took as a table, and rows and batch of each value."""
    heads = [HEAD.unpack_from(value) for value in values]
    lengths = [head[2] for head in heads]
    fields = [form.arrow.field(column) for column in columns_of(name, form)]
    fixed = [field for field in fields if _is_fixed(field.type)]
    width = sum(1 + _width(field.type) for field in fixed)
    total = sum(lengths)
    data = b"".join(
        value[HEAD.size : HEAD.size + length * width]
        for value, length in zip(values, lengths, strict=True)
    )
    columns = _columns(fixed, np.frombuffer(data, np.uint8).reshape(total, width))
    other = [field for field in fields if not _is_fixed(field.type)]
    if other:
        columns |= _other_columns(other, values, [HEAD.size + n * width for n in lengths], lengths)
    schema = pa.schema(fields)
    table = pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
    return table, lengths, [head[0] for head in heads]


def with_identity(form: StateSchema, table: Any, identity: dict[str, Any]) -> Any:
    """Return a table with the columns of its state schema; `identity`: the missing ones."""
    for name, values in identity.items():
        table = table.append_column(name, values)
    return table.select(form.arrow.names)


def _is_fixed(kind: Any) -> bool:
    return (
        pa.types.is_null(kind)
        or pa.types.is_primitive(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _width(kind: Any) -> int:
    if pa.types.is_null(kind):
        return 0
    return 1 if pa.types.is_boolean(kind) else int(kind.bit_width) // 8


def _matrix(columns: Sequence[Any], rows: int) -> Bytes2D:
    """Return the bytes of each row: for each column a validity byte, and the value."""
    parts: list[Bytes2D] = [np.zeros((rows, 0), np.uint8)]
    for column in columns:
        parts.append(np.asarray(column.is_valid()).astype(np.uint8).reshape(-1, 1))
        if _width(column.type):
            parts.append(raw_bytes(column))
    return np.concatenate(parts, axis=1)


def _columns(fields: Sequence[Any], matrix: Bytes2D) -> dict[str, Any]:
    result, offset = {}, 0
    for field in fields:
        width = _width(field.type)
        valid = matrix[:, offset].astype(np.bool_)
        raw = np.ascontiguousarray(matrix[:, offset + 1 : offset + 1 + width])
        result[field.name] = _column(field.type, valid, raw)
        offset += 1 + width
    return result


def _column(kind: Any, valid: Any, raw: Bytes2D) -> Any:
    if pa.types.is_null(kind):
        return pa.nulls(len(valid))
    if pa.types.is_boolean(kind):
        return pa.array(raw[:, 0].astype(np.bool_), mask=~valid)
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    buffers = [bits, pa.py_buffer(raw.tobytes())]
    return pa.Array.from_buffers(kind, len(valid), buffers)


def _cell(data: bytes | None) -> bytes:
    return _LENGTH.pack(_NOTHING) if data is None else _LENGTH.pack(len(data)) + data


def _encoded(column: Any) -> Iterator[bytes | None]:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        for text in column.to_pylist():
            yield None if text is None else text.encode()
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        yield from column.to_pylist()
    else:
        # Lists and structs in Arrow's format.
        for index in range(len(column)):
            item = pa.RecordBatch.from_arrays([column.slice(index, 1)], schema=_value_schema(kind))
            yield item.serialize().to_pybytes()


def _other_columns(
    fields: Sequence[Any], values: Sequence[bytes], offsets: Sequence[int], lengths: Sequence[int]
) -> dict[str, Any]:
    """Return the columns without a fixed width, which follow each other in a value."""
    result: dict[str, list[bytes | None]] = {field.name: [] for field in fields}
    for value, offset, length in zip(values, offsets, lengths, strict=True):
        position = offset
        for cells in result.values():
            for _ in range(length):
                (size,) = _LENGTH.unpack_from(value, position)
                position += _LENGTH.size
                if size == _NOTHING:
                    cells.append(None)
                else:
                    cells.append(value[position : position + size])
                    position += size
    return {field.name: _decoded(field.type, result[field.name]) for field in fields}


def _decoded(kind: Any, cells: Sequence[bytes | None]) -> Any:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.array([None if cell is None else cell.decode() for cell in cells], kind)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array(cells, kind)
    read = [pa.ipc.read_record_batch(pa.py_buffer(cell), _value_schema(kind)).column(0)
            for cell in cells if cell is not None]  # fmt: skip
    return pa.concat_arrays(read) if read else pa.nulls(0, kind)


def _value_schema(kind: Any) -> Any:
    return pa.schema([pa.field("value", kind)])
