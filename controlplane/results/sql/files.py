"""Results of statements as files: CSV, JSON, Parquet and Arrow."""

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from io import BytesIO
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc
from pydantic_core import to_json

from controlplane.formats.csv_lines import csv_lines
from controlplane.results.sql.runs import StatementResult, names_once

_ARROW: Final[Mapping[str, Any]] = {
    "bigint": pa.int64(),
    "double precision": pa.float64(),
    "boolean": pa.bool_(),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "timestamp": pa.timestamp("us"),
    "date": pa.date32(),
}
# The first that has all digits of a column.
_DECIMALS: Final = (pa.decimal128(38, 9), pa.decimal256(76, 20), pa.float64())


def arrow_table(result: StatementResult) -> Any:
    """Return the rows as a table of Arrow."""
    columns = zip(*result.rows, strict=True) if result.rows else [()] * len(result.names)
    arrays = [
        _array(kind, list(values)) for kind, values in zip(result.types, columns, strict=True)
    ]
    return pa.table(arrays, names=names_once(result.names))


def _array(kind: str, values: list[Any]) -> Any:
    if kind == "numeric":
        return _decimals(values)
    if kind in _ARROW:
        return pa.array(values, _ARROW[kind])
    return pa.array([_text(value) for value in values], pa.string())


def _decimals(values: list[Any]) -> Any:
    for kind in _DECIMALS[:-1]:
        try:
            return pa.array(values, kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            continue
    return pa.array([None if value is None else float(value) for value in values], _DECIMALS[-1])


def _text(value: Any) -> str | None:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return None if value is None else str(value)


def _csv(result: StatementResult) -> bytes:
    return csv_lines([result.names, *result.rows]).encode()


def _json(result: StatementResult) -> bytes:
    """Return columns and rows; decimals, NaN and infinities are texts."""
    columns = [{"name": name, "type": kind}
               for name, kind in zip(result.names, result.types, strict=True)]  # fmt: skip
    body = {"columns": columns, "rows": result.rows, "is_cut": result.is_cut,
            "seconds": round(result.seconds, 4)}  # fmt: skip
    return to_json(body, inf_nan_mode="strings", fallback=str)


def _parquet(result: StatementResult) -> bytes:
    # Ten megabytes, for few requests.
    from pyarrow import parquet  # noqa: PLC0415

    sink = BytesIO()
    parquet.write_table(arrow_table(result), sink, compression="zstd")
    return sink.getvalue()


def _arrow(result: StatementResult) -> bytes:
    table, sink = arrow_table(result), BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


# By format: the content type and what writes it.
FORMATS: Final[Mapping[str, tuple[str, Callable[[StatementResult], bytes]]]] = {
    "json": ("application/json", _json),
    "csv": ("text/csv; charset=utf-8", _csv),
    "parquet": ("application/vnd.apache.parquet", _parquet),
    "arrow": ("application/vnd.apache.arrow.file", _arrow),
}


def number_of(value: Any) -> float | None:
    """Return a number of a result, None for another value."""
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return float(value) if is_number else None
