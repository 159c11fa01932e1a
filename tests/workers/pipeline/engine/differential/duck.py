"""DuckDB with a table of records, and its answers as the engine gives them."""

import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType

from controlplane.wire.aggregates.layout import ARROW
from controlplane.wire.language.tree import Kind
from tests.workers.pipeline.engine.differential.sql import FUNCTIONS, MACROS, WIDE
from workers.pipeline.engine.evaluation.evaluator import as_kind

_ARROW = {"DOUBLE": pa.float64(), "VARCHAR": pa.string()}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def connection() -> duckdb.DuckDBPyConnection:
    """Return a connection with one thread and the macros of `sql.py`."""
    found = duckdb.connect(config={"threads": 1})
    # Of a statement with sixty random expressions, optimizing takes most of the time.
    found.execute("PRAGMA disable_optimizer")
    found.execute(MACROS)
    for name, (function, takes, gives) in FUNCTIONS.items():
        found.create_function(
            name, _on_columns(function, _ARROW[gives], len(takes)), takes, gives,
            type=PythonUDFType.ARROW, null_handling=FunctionNullHandling.SPECIAL,
        )  # fmt: skip
    return found


def _on_columns(function: Callable[..., Any], gives: Any, count: int) -> Callable[..., Any]:
    """Return a function of one or two values as one of columns; DuckDB counts the parameters."""

    def each(*columns: Any) -> Any:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return pa.array([_computed(function, row) for row in rows], gives)

    def of_one(only: Any) -> Any:
        return each(only)

    def of_two(left: Any, right: Any) -> Any:
        return each(left, right)

    return of_one if count == 1 else of_two


def _computed(function: Callable[..., Any], row: tuple[Any, ...]) -> Any:
    # Within CASE, DuckDB calls a function for records that take another branch, too.
    try:
        return None if None in row else function(*row)
    except ZeroDivisionError:
        return None


def put_table(
    client: duckdb.DuckDBPyConnection,
    name: str,
    columns: Mapping[str, Any],
    kinds: Mapping[str, Kind],
) -> None:
    """Create a table of these columns, in the types that `sql.py` expects; others as they are."""
    table = pa.table({
        column: _loaded(values, kinds[column]) if column in kinds else values
        for column, values in columns.items()
    })  # fmt: skip
    client.register("arriving", table)
    casts = [
        f'"{column}"::HUGEINT AS "{column}"' if kinds.get(column) is Kind.DECIMAL
        else f'"{column}"' for column in columns
    ]  # fmt: skip
    client.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT {', '.join(casts)} FROM arriving")
    client.unregister("arriving")


def _loaded(column: Any, kind: Kind) -> Any:
    found = as_kind(column, kind)
    if kind is Kind.TIME:
        return found.cast(pa.timestamp("ms")).cast(pa.timestamp("us"))
    if kind is Kind.DECIMAL:
        return pa.array([None if one is None else str(int(one.scaleb(9, WIDE)))
                         for one in found.to_pylist()], pa.string())  # fmt: skip
    return found


def plain(value: Any, kind: Kind) -> Any:
    """Return a value such that equal ones are equal in Python: NaN as text, one zero."""
    if value is None:
        return None
    match kind:
        case Kind.FLOAT:
            return "NaN" if math.isnan(value) else float(value) + 0.0
        case Kind.DECIMAL:
            exact = Decimal(value).scaleb(-9, WIDE) if isinstance(value, int) else value
            return WIDE.plus(exact.normalize(WIDE))
        case Kind.TIME if isinstance(value, dt.datetime):
            known = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return (known - _EPOCH) // dt.timedelta(milliseconds=1)
    return value


def engine_values(array: Any, kind: Kind) -> list[Any]:
    """Return an array of the engine in the same way."""
    assert array.type == ARROW[kind]
    if kind is Kind.TIME:
        array = array.cast(pa.int64())
    return [plain(value, kind) for value in array.to_pylist()]


def same(left: Any, right: Any, scale: float = 0.0) -> bool:
    """Return whether two values agree; floats within rounding, `scale` being what they add up."""
    if isinstance(left, float) and isinstance(right, float) and math.isfinite(left):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9 * max(scale, 1e-290))
    return type(left) is type(right) and bool(left == right)
