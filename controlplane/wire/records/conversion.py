"""Conversion of records to the record batch of a stream's schema.

Sources are rows (dictionaries), data frames of pandas, Arrow tables and record batches. Columns are
matched by name, in any order. A conversion that would change a value is rejected.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from controlplane.wire.errors import BadBlock
from controlplane.wire.records.record_codec import check_block
from controlplane.wire.schema import StreamSchema

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
Data = "pa.RecordBatch | pa.Table | pd.DataFrame | Sequence[Row]"
_FAULTS: Final = (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError)
_SHOWN: Final = 120


def to_record_batch(stream: int, data: Any, schema: StreamSchema) -> pa.RecordBatch:
    """Return records as one record batch of a stream's schema.

    `data`: a record batch, a table, a data frame, or a list of dictionaries. Raises `BadBlock` with
    the column, the faulty record if it is known, and the reason.
    """
    if isinstance(data, pa.RecordBatch):
        batch = data if data.schema.equals(schema.arrow) else _cast(stream, data, schema)
    elif isinstance(data, pa.Table):
        batch = _cast(stream, _whole(data), schema)
    elif _is_frame(data):
        batch = _of_frame(stream, data, schema)
    else:
        batch = _of_rows(stream, data, schema)
    check_block(stream, batch, schema)
    return batch


def _is_frame(data: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _whole(table: Any) -> pa.RecordBatch:
    batches: list[pa.RecordBatch] = table.combine_chunks().to_batches()
    if batches:
        return batches[0]
    return pa.RecordBatch.from_arrays(
        [pa.nulls(0, f.type) for f in table.schema], schema=table.schema
    )


def _cast(stream: int, batch: pa.RecordBatch, schema: StreamSchema) -> pa.RecordBatch:
    def column(field: Any) -> Any:
        return _plain(batch.column(field.name)).cast(field.type)

    return _of_columns(stream, batch.schema.names, batch.num_rows, schema, column)


def _plain(column: Any) -> Any:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _of_frame(stream: int, frame: "pd.DataFrame", schema: StreamSchema) -> pa.RecordBatch:
    """Return a data frame's records; NaN is null except in columns of floats."""

    def column(field: Any) -> Any:
        nan_is_null = not pa.types.is_floating(field.type)
        result = pa.array(frame[field.name], field.type, from_pandas=nan_is_null)
        return result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result

    names = [str(name) for name in frame.columns]
    return _of_columns(stream, names, len(frame), schema, column)


def _of_columns(
    stream: int,
    names: Sequence[str],
    count: int,
    schema: StreamSchema,
    convert: Callable[[Any], Any],
) -> pa.RecordBatch:
    """Return the batch of named columns; `convert` returns that of a field which is among them."""
    _reject_unknown_columns(stream, names, schema)
    columns = []
    for field in schema.arrow:
        try:
            known = field.name in names
            columns.append(convert(field) if known else _missing(stream, field, count))
        except _FAULTS as error:
            raise BadBlock(stream, _why(field, error), field.name) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema.arrow)


def _of_rows(stream: int, rows: "Sequence[Row]", schema: StreamSchema) -> pa.RecordBatch:
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Sequence):
        raise BadBlock(stream, f"records are a list of dictionaries, not {type(rows).__name__}")
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise BadBlock(stream, "is no dictionary", record=index)
        if not row.keys() <= schema.names:
            _reject_unknown_columns(stream, list(row), schema, index)
    columns = [_column(stream, rows, field) for field in schema.arrow]
    return pa.RecordBatch.from_arrays(columns, schema=schema.arrow)


def _column(stream: int, rows: "Sequence[Row]", field: Any) -> Any:
    values = [row.get(field.name) for row in rows]
    try:
        result = pa.array(values, field.type)
    except _FAULTS as error:
        raise _first_fault(stream, values, field, error) from error
    if not field.nullable and result.null_count:
        offset = next(index for index, value in enumerate(values) if value is None)
        raise BadBlock(stream, "is missing", field.name, offset)
    return result


def _first_fault(stream: int, values: Sequence[Any], field: Any, error: Exception) -> BadBlock:
    for index, value in enumerate(values):
        try:
            pa.array([value], field.type)
        except _FAULTS as fault:
            return BadBlock(stream, f"{_shown(value)}: {_why(field, fault)}", field.name, index)
    return BadBlock(stream, _why(field, error), field.name)


def _missing(stream: int, field: Any, count: int) -> Any:
    if not field.nullable:
        raise BadBlock(stream, "is missing", field.name)
    return pa.nulls(count, field.type)


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


def _why(field: Any, error: Exception) -> str:
    return f"is not {field.type}: {' '.join(str(error).split())[:_SHOWN]}"


def _shown(value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
