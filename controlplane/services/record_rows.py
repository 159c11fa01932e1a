"""Records as they come by HTTP, as JSON or Arrow, made into one batch of their stream's schema."""

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from controlplane.errors import Fields, Invalid
from controlplane.wire.blocks import MAX_RECORDS, times_ms
from controlplane.wire.schema import StreamSchema

# Of a request with many faults so many are told.
_TOLD: Final = 20
# Up to the end of the year 9999, which is where Python's times end.
_LAST_MS: Final = 253_402_300_799_999
_TIME: Final = "Must be milliseconds since 1970, or a time with a zone (ISO 8601)"
_PER_MS: Final = {"s": 1000, "us": 1000, "ns": 1_000_000}
Reader = Callable[[object], object]


def batch_of_rows(body: object, schema: StreamSchema) -> pa.RecordBatch:
    """Return the records of `{"records": [{"<column>": …, …}, …]}`.

    Raises `Invalid` with what is wrong in which record.
    """
    rows = body.get("records") if isinstance(body, Mapping) else None
    if not isinstance(rows, list):
        raise Invalid({"records": ["Must be a list of objects"]})
    _check_count(len(rows))
    columns: dict[str, list[Any]] = {name: [] for name in schema.arrow.names}
    readers = _readers(schema)
    faults: dict[int, Fields] = {}
    for index, row in enumerate(rows):
        told = _take(row, columns, readers)
        if told:
            faults[index] = told
    _refuse(faults, len(rows))
    return _batch(columns, schema)


def _batch(columns: Mapping[str, list[Any]], schema: StreamSchema) -> pa.RecordBatch:
    arrays = []
    for field in schema.arrow:
        try:
            arrays.append(pa.array(columns[field.name], field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise Invalid({field.name: [f"Must be {field.type}: {error}"[:300]]}) from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema.arrow)


def batch_of_arrow(body: bytes, schema: StreamSchema) -> pa.RecordBatch:
    """Return the records of an Arrow IPC stream; columns by name, in any order.

    Raises `Invalid` with what is wrong in which column or record.
    """
    try:
        table = _read(body)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Invalid({"body": [f"Is no Arrow IPC stream: {error}"]}) from error
    _check_count(table.num_rows)
    faults: Fields = {
        name: ["There is no such column"] for name in table.schema.names if name not in schema.names
    }
    arrays = [_column(table, field, faults) for field in schema.arrow]
    if faults:
        raise Invalid(faults)
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema.arrow)
    _check_nulls(batch)
    _check_times(batch, schema)
    return batch


def _take(row: object, columns: Mapping[str, list[Any]], readers: Mapping[str, Reader]) -> Fields:
    """Put a row's values into the columns; return what is wrong with it."""
    if not isinstance(row, Mapping):
        return {"": ["Must be an object"]}
    faults: Fields = {name: ["There is no such column"] for name in row if name not in columns}
    for name, read in readers.items():
        try:
            columns[name].append(read(row.get(name)))
        except ValueError as error:
            faults[name] = [str(error)]
    return faults


@lru_cache(maxsize=1024)
def _readers(schema: StreamSchema) -> dict[str, Reader]:
    return {field.name: _reader(field) for field in schema.arrow}


def _reader(field: Any) -> Reader:
    read = _plain_reader(field.type)

    def of(value: object) -> object:
        if value is not None:
            return read(value)
        if not field.nullable:
            raise ValueError("Is missing")
        return None

    return of


def _plain_reader(arrow: Any) -> Reader:
    if pa.types.is_timestamp(arrow):
        return lambda value: _time(value, arrow.unit)
    if pa.types.is_integer(arrow):
        return _whole_number(arrow)
    if pa.types.is_decimal(arrow):
        return _decimal
    return next((read for is_it, read in _READERS if is_it(arrow)), lambda value: value)


def _time_ms(value: object) -> int:
    if type(value) is int and 0 <= value <= _LAST_MS:
        return value
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(_TIME) from None
        if moment.tzinfo is not None and moment.timestamp() >= 0:
            return round(moment.timestamp() * 1000)
    raise ValueError(_TIME)


def _time(value: object, unit: str) -> int:
    ms = _time_ms(value)
    if unit == "ms":
        return ms
    return ms // _PER_MS[unit] if unit == "s" else ms * _PER_MS[unit]


def _whole_number(arrow: Any) -> Reader:
    bits = arrow.bit_width
    signed = pa.types.is_signed_integer(arrow)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
    told = f"Must be a whole number of {bits} bits" + ("" if signed else ", not negative")

    def of(value: object) -> object:
        # A bool is an int to Python and none to us.
        if type(value) is int and low <= value < high:
            return value
        raise ValueError(told)

    return of


def _number(value: object) -> float:
    if type(value) in (int, float):
        return float(value)  # type: ignore[arg-type]  # just checked
    if isinstance(value, str) and value in {"NaN", "Infinity", "-Infinity"}:
        return float(value)
    raise ValueError('Must be a number, "NaN", "Infinity" or "-Infinity"')


def _decimal(value: object) -> Decimal:
    try:
        if isinstance(value, str) or type(value) in (int, float):
            found = Decimal(str(value))
            if found.is_finite():
                return found
    except InvalidOperation:
        pass
    raise ValueError("Must be a decimal number, as a number or as text")


def _bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("Must be true or false")


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    raise ValueError("Must be text")


def _date(value: object) -> date:
    try:
        if isinstance(value, str):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError("Must be a date: 2024-02-29")


_READERS: Final = (
    (pa.types.is_boolean, _bool),
    (pa.types.is_floating, _number),
    (pa.types.is_string, _text),
    (pa.types.is_date, _date),
)


def _read(body: bytes) -> Any:
    batches, rows = [], 0
    with pa.ipc.open_stream(body) as reader:
        for batch in reader:
            batches.append(batch)
            rows += batch.num_rows
            _check_count(max(rows, 1))
        return pa.Table.from_batches(batches, reader.schema)


def _column(table: Any, field: Any, faults: Fields) -> Any:
    if field.name not in table.schema.names:
        if field.nullable:
            return pa.nulls(table.num_rows, field.type)
        faults[field.name] = ["Is missing"]
        return None
    try:
        return table.column(field.name).cast(field.type).combine_chunks()
    except (pa.ArrowException, KeyError) as error:
        faults[field.name] = [f"Must be {field.type}: {error}"]
        return None


def _check_nulls(batch: pa.RecordBatch) -> None:
    faults: dict[int, Fields] = {}
    for field in batch.schema:
        column = batch.column(field.name)
        if not field.nullable and column.null_count:
            missing = column.is_null().to_pylist()
            for index in [index for index, is_null in enumerate(missing) if is_null]:
                faults.setdefault(index, {})[field.name] = ["Is missing"]
    _refuse(faults, batch.num_rows)


def _check_times(batch: pa.RecordBatch, schema: StreamSchema) -> None:
    if not schema.event_time:
        return
    times = times_ms(batch.column(schema.event_time)).tolist()
    outside = [index for index, ms in enumerate(times) if not 0 <= ms <= _LAST_MS]
    _refuse({index: {schema.event_time: [_TIME]} for index in outside}, batch.num_rows)


def _check_count(count: int) -> None:
    if not 1 <= count <= MAX_RECORDS:
        raise Invalid({"records": [f"Give 1 to {MAX_RECORDS:,} records, not {count:,}"]})


def _refuse(faults: Mapping[int, Fields], count: int) -> None:
    """Raise `Invalid` if there are faults: how many, and the first of them."""
    if faults:
        first = dict(sorted(faults.items())[:_TOLD])
        told = f"{len(faults):,} of {count:,} records are not valid, nothing was appended"
        raise Invalid({"records": [told]}, first)
