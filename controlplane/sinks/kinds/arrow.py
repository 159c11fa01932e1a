"""Results as Arrow tables, by the day of their window's start."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from controlplane.sinks.columns import START, ResultRows, ResultTable, ValueType
from controlplane.sinks.destination import DestinationAway, RefusedByDestination

# The column of partitions.
DAY: Final = "day"
_SCALE: Final = Decimal("1e-9")
TYPES: Final[Mapping[ValueType, Any]] = {
    ValueType.INT: pa.int64(),
    ValueType.FLOAT: pa.float64(),
    ValueType.DECIMAL: pa.decimal128(38, 9),
    ValueType.BOOL: pa.bool_(),
    ValueType.TEXT: pa.string(),
    ValueType.TIME: pa.timestamp("us", tz="UTC"),
    ValueType.DATE: pa.date32(),
    ValueType.JSON: pa.string(),
}


def arrow_table(table: ResultTable, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Return results, maybe none. Raises `RefusedByDestination` for a number out of range."""
    arrays = []
    columns: Sequence[Sequence[Any]] = [()] * len(table.columns)
    if rows:
        columns = rows.columns if isinstance(rows, ResultRows) else [*zip(*rows, strict=True)]
    for column, values in zip(table.columns, columns, strict=True):
        try:
            arrays.append(_array(column.type, values))
        except (pa.ArrowInvalid, OverflowError, InvalidOperation, UnicodeError) as error:
            raise RefusedByDestination(f"{column.name}: {error}") from None
    return pa.table(arrays, names=[column.name for column in table.columns])


def table_with_day(table: ResultTable, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Return results with the day of their start. Raises as `arrow_table`."""
    content = arrow_table(table, rows)
    return content.append_column(DAY, pc.cast(content[START.name], pa.date32()))


def fitted(content: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return results with the columns of an existing table.

    Raises `RefusedByDestination` for values that its types cannot hold, `DestinationAway` if it
    lacks a column.
    """
    if missing := sorted({*content.column_names} - {*schema.names}):
        raise DestinationAway(f"The table has no column {', '.join(missing)}: add it")
    columns = []
    for field in schema:
        try:
            known = field.name in content.column_names
            values = content[field.name] if known else pa.nulls(len(content))
            columns.append(values.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise RefusedByDestination(f"{field.name}: {error}") from None
    return pa.table(columns, schema=schema)


def by_day(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield the day (YYYY-MM-DD) and the rows of each day."""
    days: Any = pc.strftime(table[START.name], format="%Y-%m-%d")
    for day in sorted(pc.unique(days).to_pylist()):
        yield day, table.filter(pc.equal(days, pa.scalar(day)))


def _array(kind: ValueType, values: Sequence[Any]) -> Any:
    if kind is ValueType.DECIMAL:
        with suppress(pa.ArrowInvalid):
            return pa.array(values, TYPES[kind])
        values = [scaled(value) for value in values]
    return pa.array(values, TYPES[kind])


def scaled(value: Decimal | None) -> Decimal | None:
    """Return a decimal with at most nine digits behind the point, None for no number."""
    if value is None or not value.is_finite():
        return None
    exponent = value.as_tuple().exponent
    return value.quantize(_SCALE) if isinstance(exponent, int) and exponent < -9 else value  # noqa: PLR2004 - the scale
