"""Messages as records of a schema: many at once by Arrow's JSON reader, one by one if that fails.

Both ways give the same records: a value is converted exactly or not at all, as in appends over
HTTP. Fields that the schema does not have are ignored, as a topic may have more of them.
"""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from algorithms.strict_json import BadJson, check_bounds, object_of
from controlplane.wire.records.casts import FAILURES, CastRules
from controlplane.wire.records.conversion import Converted, TooManyFaults
from controlplane.wire.records.numbers import NumberText
from controlplane.wire.records.values import convert_array, convert_values
from controlplane.wire.schema import StreamSchema
from controlplane.wire.topics.source import MessageFormat, Metadata, TopicSource

# The stubs of Arrow do not know what its reader takes.
arrow_json: Any = import_module("pyarrow.json")
# Messages that are decoded together: fewer than the faults of a column that are described.
CHUNK: Final = 1_000
_RULES: Final = CastRules()
# What Arrow takes and strict JSON does not: constants, NUL, halves of surrogate pairs, BOM.
_NOT_STRICT: Final = (b"NaN", b"Inf", b"\0", b"\\u0000", b"\\ud", b"\\uD", b"\xef\xbb\xbf")


class Fetched(NamedTuple):
    """Messages of one partition; values are bytes, `times_ms` of the broker or the producer."""

    partition: int
    offsets: Sequence[int]
    values: Sequence[bytes]
    keys: Sequence[bytes | None]
    times_ms: Sequence[int]


class Decoded(NamedTuple):
    """Records of messages; `places`: the index of the message of each, `faults`: by index."""

    records: pa.RecordBatch
    places: np.ndarray[Any, np.dtype[np.int64]]
    faults: Mapping[int, str]


def decode(messages: Fetched, source: TopicSource, schema: StreamSchema) -> Decoded:
    """Return the records of messages under a schema, and why others are none."""
    named = [field for field in schema.arrow if field.name not in source.metadata]
    count, faults = len(messages.values), dict[int, str]()
    if source.format == MessageFormat.STRING:
        columns = {named[0].name: _texts(messages.values, faults)}
    else:
        columns = _columnar(messages.values, named) or _row_by_row(messages.values, named, faults)
    for name, kind in source.metadata.items():
        columns[name] = _metadata(Metadata(kind), messages, schema.arrow.field(name).type, faults)
    for field in schema.arrow:
        if not field.nullable and columns[field.name].null_count:
            for place in np.flatnonzero(np.asarray(columns[field.name].is_null())).tolist():
                faults.setdefault(place, f"{field.name} is missing or null")
    places = np.array([index for index in range(count) if index not in faults], np.int64)
    arrays = [columns[field.name] for field in schema.arrow]
    if faults:
        arrays = [array.take(pa.array(places)) for array in arrays]
    return Decoded(pa.RecordBatch.from_arrays(arrays, schema=schema.arrow), places, faults)


def _columnar(values: Sequence[bytes], fields: Sequence[Any]) -> dict[str, Any] | None:
    """Return the columns of messages that Arrow reads as a whole, None if it cannot.

    One message is one line. As no line is blank, and there are as many rows as lines, each row is
    the message of its line.
    """
    data = b"\n".join(values)
    if data.count(b"\n") != len(values) - 1 or any(not value.strip() for value in values):
        return None
    if any(text in data for text in _NOT_STRICT):
        return None
    try:
        data.decode()
        sample = json.loads(values[0])
        types = [(f.name, _read_type(f.type, sample.get(f.name))) for f in fields]
        options = arrow_json.ParseOptions(pa.schema(types), unexpected_field_behavior="ignore")
        whole = arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
        table = arrow_json.read_json(pa.BufferReader(data), whole, options)
        if table.num_rows != len(values):
            return None
        columns = {f.name: _of_column(table.column(f.name), f.type) for f in fields}
    except (*FAILURES, TooManyFaults, AttributeError, RecursionError):
        return None
    # Reasons quote what the message has: they are found one by one.
    return None if any(item.faults for item in columns.values()) else _arrays(columns)


def _read_type(target: Any, value: Any) -> Any:
    """Return the type as which Arrow reads a column, exactly; its values are converted then."""
    if pa.types.is_timestamp(target):
        return pa.int64() if isinstance(value, int) else pa.string()
    if pa.types.is_date(target) or pa.types.is_binary(target):
        return pa.string()
    if pa.types.is_struct(target):
        given = value if isinstance(value, Mapping) else {}
        return pa.struct([(f.name, _read_type(f.type, given.get(f.name))) for f in target])
    if pa.types.is_list(target):
        first = value[0] if isinstance(value, list) and value else None
        return pa.list_(_read_type(target.value_type, first))
    return pa.int64() if pa.types.is_integer(target) else target


def _of_column(column: Any, target: Any) -> Converted:
    return convert_array(pa.concat_arrays(column.chunks), target, _RULES)


def _arrays(columns: Mapping[str, Converted]) -> dict[str, Any]:
    return {name: item.array for name, item in columns.items()}


def _row_by_row(
    values: Sequence[bytes], fields: Sequence[Any], faults: dict[int, str]
) -> dict[str, Any]:
    """Return the columns of messages that are read one by one; adds to `faults`."""
    rows = [_row(value, index, faults) for index, value in enumerate(values)]
    columns = {}
    for field in fields:
        converted = convert_values([row.get(field.name) for row in rows], field.type, _RULES)
        columns[field.name] = converted
        for index, why in converted.faults.items():
            faults.setdefault(index, f"{field.name}: {why[0].lower()}{why[1:]}")
    return _arrays(columns)


def _row(value: bytes, index: int, faults: dict[int, str]) -> Mapping[str, Any]:
    """Return the object of a message, an empty one with a fault if it is none."""
    try:
        check_bounds(value)
        row = _decoder.decode(value.decode())
    except (ValueError, RecursionError) as error:
        faults[index] = f"is not JSON: {error}"[:200]
        return {}
    if not isinstance(row, dict):
        faults[index] = "is not an object of JSON"
        return {}
    return row


def _no_constant(name: str) -> Any:
    raise BadJson("number", f"{name} is not JSON")


_decoder: Final = json.JSONDecoder(
    parse_float=NumberText, parse_constant=_no_constant, object_pairs_hook=object_of
)


def _texts(values: Sequence[bytes | None], faults: dict[int, str]) -> Any:
    """Return bytes as text, null with a fault where they are no UTF-8."""
    result = [None if value is None else _text(value) for value in values]
    for index, (value, text) in enumerate(zip(values, result, strict=True)):
        if value is not None and text is None:
            faults[index] = "is not text in UTF-8, or has NUL"
    return pa.array(result, pa.string())


def _text(value: bytes) -> str | None:
    try:
        return None if b"\0" in value else value.decode()
    except UnicodeDecodeError:
        return None


def _metadata(kind: Metadata, messages: Fetched, target: Any, faults: dict[int, str]) -> Any:
    count = len(messages.values)
    match kind:
        case Metadata.KEY:
            return _texts(messages.keys, faults)
        case Metadata.OFFSET:
            return pa.array(messages.offsets, target)
        case Metadata.PARTITION:
            return pa.array(np.full(count, messages.partition), target)
        case Metadata.TIMESTAMP:
            return pa.array(messages.times_ms, pa.int64()).cast(target)
