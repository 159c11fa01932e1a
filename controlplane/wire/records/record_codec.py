"""Blocks: the records of one append to one stream, self-describing.

One block of up to a thousand records is an order of magnitude cheaper to write and to read than
one JSON row per record. A block describes its columns itself, so that a reader needs no other
schema and blocks of an older schema stay readable:

    "WB1" | length of the descriptor (uint32) | descriptor | Arrow record batch (IPC message)

The descriptor is UTF-8 text: the name of the event-time column (empty: the records have the time of
their append), then a line `name type` per column, with `!` after it if the column is not nullable.
Streams have few descriptors, so readers cache them.
"""

import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from controlplane.wire.errors import BadBlock, InvalidBlock
from controlplane.wire.log.values import NO_TIME
from controlplane.wire.records.casts import FAILURES, CastRules
from controlplane.wire.records.conversion import Converted, TooManyFaults
from controlplane.wire.records.values import convert_array, convert_values
from controlplane.wire.schema import StreamSchema
from controlplane.wire.types import BadType, arrow_type, type_name

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
Data = "pa.RecordBatch | pa.Table | pd.DataFrame | Sequence[Row]"
# A column of Arrow has a unit of time on purpose: finer times are not cut.
_TABLE: Final = CastRules(exact_times=True)
MAX_RECORDS: Final = 100_000
_MAGIC: Final = b"WB1"
_HEAD: Final = struct.Struct("<3sI")
_MS: Final[Any] = pa.timestamp("ms", tz="UTC")
_TICKS_PER_S: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class BlockSchema(NamedTuple):
    """The schema of a block: its Arrow schema and its event-time column (or empty)."""

    schema: Any
    event_time: str


class DecodedBlock(NamedTuple):
    """The records of a block, and its schema."""

    records: pa.RecordBatch
    description: BlockSchema


def check_block(stream: int, batch: pa.RecordBatch, schema: StreamSchema) -> None:
    """Raise `BadBlock` unless `batch` can be appended to a stream of this schema as it is."""
    if not 0 < batch.num_rows <= MAX_RECORDS:
        raise BadBlock(
            stream, f"a block holds 1 to {MAX_RECORDS:,} records, not {batch.num_rows:,}"
        )
    if not batch.schema.equals(schema.arrow):
        raise _schema_fault(stream, batch.schema, schema.arrow)
    for field, column in zip(schema.arrow, batch.columns, strict=True):
        if not field.nullable and column.null_count:
            raise BadBlock(stream, "must not hold nulls", field.name)


def _schema_fault(stream: int, given: Any, wanted: Any) -> BadBlock:
    for field in wanted:
        if field.name not in given.names:
            return BadBlock(stream, "is missing", field.name)
        if not given.field(field.name).equals(field):
            other = given.field(field.name)
            return BadBlock(stream, f"is {_signature(other)}, not {_signature(field)}", field.name)
    names = ", ".join(wanted.names)
    return BadBlock(stream, f"the columns must be {names}, in this order and no others")


def _signature(field: Any) -> str:
    return f"{field.type}{'' if field.nullable else ' not null'}"


class BlockTimes(NamedTuple):
    """The event times of a block (ms): those that its watermark follows from, and of all records.

    `newest_ms`: without outliers, `NO_TIME` without any time, None if the records have none.
    `range_ms`: the oldest and the newest.
    """

    newest_ms: int | None
    range_ms: tuple[int, int] | None = None


def block_times(batch: pa.RecordBatch, schema: StreamSchema, now_ms: int) -> BlockTimes:
    """Return the event times of a block.

    A record that is further ahead of `now_ms` than the schema allows does not count. A time is an
    outlier if it is beyond Tukey's fence, 1.5 interquartile ranges after the third quartile
    (Exploratory Data Analysis, 1977), and the watermark delay.
    """
    if not schema.event_time:
        return BlockTimes(None)
    times = times_ms(batch.column(schema.event_time))
    newest, last = int(times.max()), now_ms + round(schema.max_future_s * 1000)
    if newest > last:
        times = times[times <= last]
        if not len(times):
            return BlockTimes(NO_TIME)
        newest = int(times.max())
    oldest, delay = int(times.min()), round(schema.watermark_delay_s * 1000)
    inner = newest
    if newest - oldest > delay:
        places = (len(times) - 1) // 4, 3 * (len(times) - 1) // 4
        first, third = np.partition(times, places)[list(places)].tolist()
        fence = third + 1.5 * (third - first) + delay
        inner = newest if newest <= fence else int(times[times <= fence].max())
    return BlockTimes(inner, (oldest, newest))


def times_ms(column: Any) -> NDArray[np.int64]:
    """Return a column of timestamps without nulls as int64[n] milliseconds, rounded down."""
    ticks = np.asarray(column.cast(pa.int64()))
    per_s = _TICKS_PER_S[column.type.unit]
    if per_s == 1:
        # Times beyond the range of milliseconds become its ends.
        return np.asarray(np.clip(ticks, NO_TIME // 1000, -NO_TIME // 1000) * 1000)
    return ticks if per_s == 10**3 else ticks // (per_s // 1000)


def whole_ms(column: Any) -> Any:
    """Return timestamps as an Arrow array in milliseconds, rounded down as event times are."""
    missing = np.asarray(column.is_null()) if column.null_count else None
    plain = column if missing is None else column.fill_null(pa.scalar(0, column.type))
    return pa.array(times_ms(plain), mask=missing).view(_MS)


def encode_block(batch: pa.RecordBatch, event_time: str = "") -> bytes:
    """Return the bytes of one block."""
    descriptor = descriptor_of(batch.schema, event_time)
    body = memoryview(batch.serialize())
    return b"".join((_HEAD.pack(_MAGIC, len(descriptor)), descriptor, body))


def decode_block(data: bytes) -> DecodedBlock:
    """Return the records of one block that `encode_block` wrote. Raises `InvalidBlock`."""
    try:
        magic, size = _HEAD.unpack_from(data)
        if magic != _MAGIC:
            raise InvalidBlock("it does not begin as a block does")
        start = _HEAD.size + size
        description = parse_descriptor(bytes(data[_HEAD.size : start]))
        body = pa.py_buffer(memoryview(data)[start:])
        return DecodedBlock(pa.ipc.read_record_batch(body, description.schema), description)
    except (struct.error, pa.ArrowException, OSError, EOFError, ValueError, KeyError) as error:
        raise InvalidBlock(str(error)[:200]) from error


@lru_cache(maxsize=1024)
def parse_descriptor(descriptor: bytes) -> BlockSchema:
    """Return the schema in a descriptor. Raises `InvalidBlock`."""
    try:
        event_time, *lines = descriptor.decode().split("\n")
        fields = []
        for line in lines:
            name, _, kind = line.partition(" ")
            fields.append(pa.field(name, arrow_type(kind.removesuffix("!")), kind[-1:] != "!"))
        schema = pa.schema(fields)
        if event_time and not pa.types.is_timestamp(schema.field(event_time).type):
            raise InvalidBlock(f"its event time {event_time} is not a timestamp")
    except (BadType, ValueError, KeyError) as error:
        raise InvalidBlock(f"its descriptor: {error}"[:200]) from error
    return BlockSchema(schema, event_time)


@lru_cache(maxsize=1024)
def descriptor_of(schema: Any, event_time: str) -> bytes:
    """Return the descriptor of a schema: what `parse_descriptor` reads."""
    lines = [f"{f.name} {type_name(f.type)}{'' if f.nullable else '!'}" for f in schema]
    return "\n".join([event_time, *lines]).encode()


def nested_column(batch: pa.RecordBatch, name: str) -> Any:
    """Return a column, or a field of a struct as `column.field`; None if it is missing."""
    head, *rest = name.split(".")
    index = batch.schema.get_field_index(head)
    if index < 0:
        return None
    return struct_field(batch.column(index), rest)


def struct_field(column: Any, path: Sequence[str]) -> Any:
    """Return a field of a struct, by the names on the way to it; None if it is missing."""
    for name in path:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            return None
        column = pc.struct_field(column, name)
    return column


def to_record_batch(stream: int, data: Any, schema: StreamSchema) -> pa.RecordBatch:
    """Return records as one record batch of a stream's schema.

    Columns are matched by name, in any order. A conversion that would change a value is rejected,
    except as `casts` describes; times of tables and data frames are not cut. `data`: a record
    batch, a table, a data frame, or a list of dictionaries. Raises `BadBlock` with the column, the
    faulty record if it is known, and the reason.
    """
    convert: Callable[[Any], Converted]
    if isinstance(data, pa.RecordBatch | pa.Table):
        names, count, convert = data.schema.names, data.num_rows, partial(_of_table, data)
    elif _is_frame(data):
        names, count = [str(name) for name in data.columns], len(data)
        convert = partial(_of_frame, data)
    else:
        _check_rows(stream, data, schema)
        names, count, convert = schema.arrow.names, len(data), partial(_of_rows, data)
    _reject_unknown_columns(stream, names, schema)
    columns = []
    for field in schema.arrow:
        if field.name in names:
            columns.append(_column(stream, field, convert))
        elif field.nullable:
            columns.append(pa.nulls(count, field.type))
        else:
            raise BadBlock(stream, "is missing", field.name)
    batch = pa.RecordBatch.from_arrays(columns, schema=schema.arrow)
    check_block(stream, batch, schema)
    return batch


def _column(stream: int, field: Any, convert: Callable[[Any], Converted]) -> Any:
    try:
        converted = convert(field)
        array, faults = converted.array, converted.faults
    except TooManyFaults as error:
        array, faults, why = None, error.faults, str(error)
    except FAILURES as error:
        array, faults, why = None, {}, str(error)
    if faults:
        record, why = min(faults.items())
        text = f"is not {field.type}: {why[0].lower()}{why[1:]}"
        raise BadBlock(stream, text, field.name, record)
    if array is None:
        raise BadBlock(stream, f"is not {field.type}: {why:.120}", field.name)
    if not field.nullable and array.null_count:
        record = pc.index(array.is_null(), value=True).as_py()
        raise BadBlock(stream, "must not hold nulls", field.name, record)
    return array


def _of_table(table: Any, field: Any) -> Converted:
    return convert_array(_whole(table.column(field.name)), field.type, _TABLE)


def _whole(column: Any) -> Any:
    """Return the chunks of a column as one array."""
    if isinstance(column, pa.ChunkedArray):
        return pa.concat_arrays(column.chunks) if column.chunks else pa.nulls(0, column.type)
    return column


def _is_frame(data: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _of_frame(frame: "pd.DataFrame", field: Any) -> Converted:
    """Return a column of a data frame; NaN is null except in columns of floats."""
    series = frame[field.name]
    has_nan = pa.types.is_floating(field.type)
    if series.dtype != object or pa.types.is_string(field.type):
        array = _whole(pa.array(series, from_pandas=not has_nan))
        return convert_array(array, field.type, _TABLE)
    values = [
        None if is_missing and not (has_nan and isinstance(value, float)) else value
        for value, is_missing in zip(series, series.isna(), strict=True)
    ]
    return convert_values(values, field.type, _TABLE)


def _check_rows(stream: int, rows: Any, schema: StreamSchema) -> None:
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Sequence):
        raise BadBlock(stream, f"records are a list of dictionaries, not {type(rows).__name__}")
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise BadBlock(stream, "is not a dictionary", record=index)
        if not row.keys() <= schema.names:
            _reject_unknown_columns(stream, list(row), schema, index)


def _of_rows(rows: "Sequence[Row]", field: Any) -> Converted:
    return convert_values([row.get(field.name) for row in rows], field.type, CastRules())


def _reject_unknown_columns(
    stream: int, names: Sequence[Any], schema: StreamSchema, record: int | None = None
) -> None:
    for name in names:
        if name not in schema.names:
            known = ", ".join(schema.arrow.names[:20])
            raise BadBlock(
                stream, f"there is no such column; the columns are {known}", str(name)[:100], record
            )
    if record is None and len(set(names)) != len(names):
        raise BadBlock(stream, "two columns have the same name")
