"""Records as they come by HTTP, as JSON or Arrow, made into one batch of the streams' schema."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from controlplane.errors import Fields, Invalid
from controlplane.wire.blocks import MAX_RECORDS, SCHEMA

# Of a request with many faults so many are told.
_TOLD: Final = 20
# Up to the end of the year 9999, which is where Python's times end.
_LAST_MS: Final = 253_402_300_799_999
_INT32: Final = 2**31
_NUMBER: Final = "Must be a whole number of 32 bits"
_TIME: Final = "Must be milliseconds since 1970, or a time with a zone (ISO 8601)"


def batch_of_rows(body: object) -> pa.RecordBatch:
    """Return the records of `{"records": [{"ts": …, "car": …, …}, …]}`.

    Raises `Invalid` with what is wrong in which record.
    """
    rows = body.get("records") if isinstance(body, Mapping) else None
    if not isinstance(rows, list):
        raise Invalid({"records": ["Must be a list of objects"]})
    _check_count(len(rows))
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    faults: dict[int, Fields] = {}
    for index, row in enumerate(rows):
        told = _take(row, columns)
        if told:
            faults[index] = told
    _refuse(faults, len(rows))
    arrays = [pa.array(columns[field.name], field.type) for field in SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def batch_of_arrow(body: bytes) -> pa.RecordBatch:
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
        name: ["There is no such column"] for name in table.schema.names if name not in SCHEMA.names
    }
    arrays = [_column(table, field, faults) for field in SCHEMA]
    if faults:
        raise Invalid(faults)
    batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
    _check_nulls(batch)
    _check_times(batch)
    return batch


def _take(row: object, columns: Mapping[str, list[Any]]) -> Fields:
    """Put a row's values into the columns; return what is wrong with it."""
    if not isinstance(row, Mapping):
        return {"": ["Must be an object"]}
    faults: Fields = {name: ["There is no such column"] for name in row if name not in columns}
    for name, read in _READERS.items():
        try:
            columns[name].append(read(row.get(name)))
        except ValueError as error:
            faults[name] = [str(error)]
    return faults


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
    raise ValueError("Is missing" if value is None else _TIME)


def _number(value: object) -> int:
    # A bool is an int to Python and none to us.
    if type(value) is int and -_INT32 <= value < _INT32:
        return value
    raise ValueError("Is missing" if value is None else _NUMBER)


def _number_or_none(value: object) -> int | None:
    return None if value is None else _number(value)


def _reader(field: Any) -> Callable[[object], int | None]:
    if pa.types.is_timestamp(field.type):
        return _time_ms
    return _number_or_none if field.nullable else _number


_READERS: Final = {field.name: _reader(field) for field in SCHEMA}


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
        faults[field.name] = ["Is missing"]
        return None
    try:
        return table.column(field.name).cast(field.type).combine_chunks()
    except (pa.ArrowException, KeyError) as error:
        faults[field.name] = [f"Must be {field.type}: {error}"]
        return None


def _check_nulls(batch: pa.RecordBatch) -> None:
    faults: dict[int, Fields] = {}
    for field in SCHEMA:
        column = batch.column(field.name)
        if not field.nullable and column.null_count:
            missing = column.is_null().to_pylist()
            for index in [index for index, is_null in enumerate(missing) if is_null]:
                faults.setdefault(index, {})[field.name] = ["Is missing"]
    _refuse(faults, batch.num_rows)


def _check_times(batch: pa.RecordBatch) -> None:
    times = batch.column("ts").cast(pa.int64()).to_pylist()
    outside = [index for index, ms in enumerate(times) if not 0 <= (ms or 0) <= _LAST_MS]
    _refuse({index: {"ts": [_TIME]} for index in outside}, batch.num_rows)


def _check_count(count: int) -> None:
    if not 1 <= count <= MAX_RECORDS:
        raise Invalid({"records": [f"Give 1 to {MAX_RECORDS:,} records, not {count:,}"]})


def _refuse(faults: Mapping[int, Fields], count: int) -> None:
    """Raise `Invalid` if there are faults: how many, and the first of them."""
    if faults:
        first = dict(sorted(faults.items())[:_TOLD])
        told = f"{len(faults):,} of {count:,} records are not valid, nothing was appended"
        raise Invalid({"records": [told]}, first)
