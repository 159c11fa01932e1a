"""Messages of formats that Arrow does not read, as rows, by the compiled readers of libraries.

A row has the fields of a message by name; a message that cannot be read has a fault instead.
"""

import csv
import io
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import fastavro
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError

from controlplane.wire.topics.base import BadSource
from controlplane.wire.topics.definitions import Definition, avro_schema, protobuf_class

Row = Mapping[str, Any]
Rows = list[Row]
# What fastavro raises for bytes that do not fit a schema.
_NOT_AVRO: Final = (
    EOFError, ValueError, LookupError, TypeError, OverflowError, struct.error, MemoryError,
)  # fmt: skip
_NOTHING: Final[Row] = {}
_WRAPPED: Final = "google.protobuf."


def avro_rows(
    values: Sequence[bytes], definition: Definition, faults: dict[int, str], places: Sequence[int]
) -> Rows:
    """Return messages of one schema of Avro as rows; adds to `faults` by their places.

    To read them as one block takes as long, and cannot name the message at fault.
    """
    schema, rows = avro_schema(definition), list[Row]()
    for value, place in zip(values, places, strict=True):
        stream = io.BytesIO(value)
        try:
            row: Any = fastavro.schemaless_reader(stream, schema, None)
        except _NOT_AVRO as error:
            row, faults[place] = _NOTHING, f"is not a record of its schema of Avro: {error}"[:200]
        if stream.tell() != len(value) or not isinstance(row, dict):
            faults.setdefault(place, "has another length than a record of its schema of Avro")
        rows.append(row if isinstance(row, dict) else _NOTHING)
    return rows


def protobuf_rows(
    values: Sequence[bytes], definition: Definition, faults: dict[int, str], places: Sequence[int]
) -> Rows:
    """Return messages of Protobuf as rows; adds to `faults` by their places."""
    return [_protobuf_row(value, definition, place, faults)
            for value, place in zip(values, places, strict=True)]  # fmt: skip


def _protobuf_row(value: bytes, definition: Definition, place: int, faults: dict[int, str]) -> Row:
    try:
        path, begin = ((), 0) if definition.message else _path_of(value)
        kind = protobuf_class(definition, path)
        return _fields(kind.FromString(value[begin:]))
    except (DecodeError, BadSource, IndexError) as error:
        faults[place] = f"is not a message of its type of Protobuf: {error}"[:200]
        return _NOTHING


def _path_of(value: bytes) -> tuple[tuple[int, ...], int]:
    """Return the place of the type of a message, and where the message begins."""
    count, place = _number(value, 0)
    if not count:
        return (0,), place
    path = []
    for _ in range(count):
        index, place = _number(value, place)
        path.append(index)
    return tuple(path), place


def _number(value: bytes, place: int) -> tuple[int, int]:
    """Return a number in the zigzag coding, and the place behind it. Raises `IndexError`."""
    number = shift = 0
    while True:
        byte = value[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004 - the last byte has no eighth bit
            return (number >> 1) ^ -(number & 1), place


def _fields(message: Any) -> dict[str, Any]:
    return {name: read(message) for name, read in _readers(message.DESCRIPTOR)}


_known_readers: Final[dict[Descriptor, Sequence[tuple[str, Callable[[Any], Any]]]]] = {}


def _readers(kind: Descriptor) -> Sequence[tuple[str, Callable[[Any], Any]]]:
    """Return by field of a type what reads its value of a message."""
    if kind not in _known_readers:
        _known_readers[kind] = [(field.name, _reader(field)) for field in kind.fields]
    return _known_readers[kind]


def _reader(field: FieldDescriptor) -> Callable[[Any], Any]:
    name, item = field.name, _item_reader(field)
    if field.is_repeated:
        own = field.message_type
        if own is not None and own.GetOptions().map_entry:
            of_value = _item_reader(own.fields_by_name["value"])
            return lambda message: [{"key": key, "value": of_value(value)}
                                    for key, value in getattr(message, name).items()]  # fmt: skip
        return lambda message: [item(value) for value in getattr(message, name)]
    if field.has_presence:
        return lambda message: item(getattr(message, name)) if message.HasField(name) else None
    return lambda message: item(getattr(message, name))


def _item_reader(field: FieldDescriptor) -> Callable[[Any], Any]:
    if field.message_type is not None:
        full = field.message_type.full_name
        if full == f"{_WRAPPED}Timestamp":
            return lambda value: value.ToJsonString()
        if full.startswith(_WRAPPED) and full.endswith("Value") and full != f"{_WRAPPED}Value":
            return lambda value: value.value
        return _fields
    if field.enum_type is not None:
        names = field.enum_type.values_by_number
        return lambda value: names[value].name if value in names else str(value)
    return lambda value: value


def csv_rows(values: Sequence[bytes], names: Sequence[str], faults: dict[int, str]) -> Rows:
    """Return lines of CSV as rows of text; an empty cell is null. Adds to `faults`."""
    rows = []
    for place, value in enumerate(values):
        try:
            cells = _cells(value)
        except (ValueError, csv.Error) as error:
            faults[place] = f"is not a line of CSV: {error}"[:200]
            rows.append(_NOTHING)
            continue
        if len(cells) != len(names):
            faults[place] = f"has {len(cells)} cells, not {len(names)}"
        rows.append({name: cell or None for name, cell in zip(names, cells, strict=False)})
    return rows


def _cells(value: bytes) -> list[str]:
    text = value.decode().removesuffix("\n").removesuffix("\r")
    if "\0" in text:
        raise ValueError("it has NUL")
    if '"' not in text and "\n" not in text and "\r" not in text:
        return text.split(",")
    lines: Iterator[list[str]] = csv.reader(io.StringIO(text, newline=""), strict=True)
    cells = next(lines, [])
    if next(lines, None) is not None:
        raise ValueError("it has more than one line")
    return cells
