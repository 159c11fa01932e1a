"""Messages as records of a schema: many at once by Arrow's JSON reader, else by rows.

Both ways give the same records: a value is converted exactly or not at all, as in appends over
HTTP. Fields that the schema does not have are ignored, as a topic may have more of them.
"""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from controlplane.wire.records.casts import FAILURES, CastRules
from controlplane.wire.records.conversion import Converted, TooManyFaults
from controlplane.wire.records.values import convert_array, convert_values
from controlplane.wire.schema import StreamSchema
from controlplane.wire.topics.registry import body_of, prefix_of
from controlplane.wire.topics.source import MessageEnvelope, MessageFormat, Metadata, TopicSource
from workers.pipeline.sources.entries import Decoded
from workers.pipeline.sources.topic.messages import (
    DELETION,
    Changes,
    Fetched,
    changes_of,
    record_rows,
)
from workers.pipeline.sources.topic.rows import Row

# The stubs of Arrow do not know what its reader takes.
arrow_json: Any = import_module("pyarrow.json")
# Messages that are decoded together: fewer than the faults of a column that are described.
CHUNK: Final = 1_000
_RULES: Final = CastRules()
# What Arrow takes and strict JSON does not: constants, NUL, halves of surrogate pairs, BOM.
_NOT_STRICT: Final = (b"NaN", b"Inf", b"\0", b"\\u0000", b"\\ud", b"\\uD", b"\xef\xbb\xbf")


def decode(messages: Fetched, source: TopicSource, schema: StreamSchema) -> Decoded:
    """Return the records of messages under a schema, and why others are none.

    Raises `SourceUnavailable` if their schemas cannot be asked for.
    """
    faults = dict[int, str]()
    named = [field for field in schema.arrow if field.name not in source.metadata]
    columns, changes = columns_of(messages, source, named, faults)
    for name, kind in source.metadata.items():
        target = schema.arrow.field(name).type
        columns[name] = _metadata(Metadata(kind), messages, changes, target, faults)
    add_missing(columns, schema, faults)
    for place in changes.skipped:
        faults.pop(place, None)
    left_out = faults.keys() | changes.skipped
    every = range(len(messages.values))
    places = np.array([index for index in every if index not in left_out], np.int64)
    arrays = [columns[field.name] for field in schema.arrow]
    if left_out:
        arrays = [array.take(pa.array(places)) for array in arrays]
    records = pa.RecordBatch.from_arrays(arrays, schema=schema.arrow)
    return Decoded(records, places, faults, len(changes.skipped))


def add_missing(columns: Mapping[str, Any], schema: StreamSchema, faults: dict[int, str]) -> None:
    """Add to `faults` the records without a value that the schema requires."""
    for field in schema.arrow:
        if not field.nullable and columns[field.name].null_count:
            for place in np.flatnonzero(np.asarray(columns[field.name].is_null())).tolist():
                faults.setdefault(place, f"{field.name} is missing or null")


def columns_of(
    messages: Fetched, source: TopicSource, named: Sequence[Any], faults: dict[int, str]
) -> tuple[dict[str, Any], Changes]:
    """Return the named columns (fields of Arrow) of messages; adds to `faults`."""
    if source.format == MessageFormat.STRING:
        unchanged = Changes([""] * len(messages.values), set())
        return {named[0].name: _texts(messages.values, faults)}, unchanged
    if (read := _read_by_arrow(messages, source, named)) is not None:
        return read
    rows, changes = record_rows(messages, source, [field.name for field in named], faults)
    return _by_rows(rows, named, source, faults), changes


def _read_by_arrow(
    messages: Fetched, source: TopicSource, named: Sequence[Any]
) -> tuple[dict[str, Any], Changes] | None:
    """Return the columns of messages that Arrow reads as a whole, None if it cannot."""
    if source.format != MessageFormat.JSON:
        return None
    values = messages.values
    if source.registry:
        if any(prefix_of(value) is None for value in values):
            return None
        values = [body_of(value) for value in values]
    if source.envelope == MessageEnvelope.NONE:
        columns = _columnar(values, named)
        return None if columns is None else (columns, Changes([""] * len(values), set()))
    record = pa.struct([(field.name, field.type) for field in named])
    fields = [pa.field("op", pa.string()), pa.field("after", record), pa.field("before", record)]
    whole = _columnar(values, fields)
    changes = None if whole is None else changes_of(whole["op"].to_pylist(), source)
    if whole is None or changes is None:
        return None
    is_deletion = pa.array([name == DELETION for name in changes.operations])
    after, before = (whole[name].flatten() for name in ("after", "before"))
    return {
        field.name: pc.if_else(is_deletion, before[index], after[index])
        for index, field in enumerate(named)
    }, changes


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


def _by_rows(
    rows: Sequence[Row], fields: Sequence[Any], source: TopicSource, faults: dict[int, str]
) -> dict[str, Any]:
    """Return the columns of rows; adds to `faults`."""
    rules = CastRules(textual=source.format == MessageFormat.CSV)
    columns = {}
    for field in fields:
        values = [row.get(field.name) for row in rows]
        if pa.types.is_nested(field.type):
            values = [_known_fields(value, field.type) for value in values]
        converted = convert_values(values, field.type, rules)
        columns[field.name] = converted
        for index, why in converted.faults.items():
            faults.setdefault(index, f"{field.name}: {why[0].lower()}{why[1:]}")
    return _arrays(columns)


def _known_fields(value: Any, target: Any) -> Any:
    """Return a value without the fields that its type does not have."""
    if pa.types.is_struct(target) and isinstance(value, Mapping):
        return {f.name: _known_fields(value.get(f.name), f.type) for f in target}
    if pa.types.is_list(target) and isinstance(value, list):
        return [_known_fields(item, target.value_type) for item in value]
    return value


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


def _metadata(
    kind: Metadata, messages: Fetched, changes: Changes, target: Any, faults: dict[int, str]
) -> Any:
    count = len(messages.values)
    match kind:
        case Metadata.OPERATION:
            return pa.array([name or None for name in changes.operations], target)
        case Metadata.KEY:
            return _texts(messages.keys, faults)
        case Metadata.OFFSET:
            return pa.array(messages.offsets, target)
        case Metadata.PARTITION:
            return pa.array(np.full(count, messages.partition), target)
        case Metadata.TOPIC:
            return pa.repeat(pa.scalar(messages.topic, target), count)
        case Metadata.TIMESTAMP:
            return pa.array(messages.times_ms, pa.int64()).cast(target)
