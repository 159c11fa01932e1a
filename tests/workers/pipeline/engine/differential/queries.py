"""Random queries, what DuckDB has for them, and the engine's windows in the same form."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

import duckdb

from controlplane.wire.aggregates.finalize import WindowRow
from controlplane.wire.language.aggregates import Aggregate
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Computation, Join
from controlplane.wire.query_text import QueryText
from tests.workers.pipeline.engine.differential.declared import Draw
from tests.workers.pipeline.engine.differential.duck import plain
from tests.workers.pipeline.engine.differential.sql import UNIT, sql_of

ALL: Final = (Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.BOOL, Kind.TEXT, Kind.TIME, Kind.DATE)
NUMBERS: Final = ALL[:3]
# An argument of each kind may be given to these.
_OF_ANY: Final = ("count", "min", "max", "count_distinct", "top_k")
_OF_NUMBERS: Final = ("sum", "mean", "variance", "stddev", "quantile", "median")
# What needs all values of a window, and is computed of them in Python.
_LISTED: Final = ("quantile", "median", "top_k", "sum", "mean", "variance", "stddev")


def random_query(rng: random.Random, texts: Draw, aggregates: int) -> QueryText:
    """Return a query with so many aggregates, on named columns and expressions."""
    columns = {f"c{at}": texts.of(rng.choice(ALL), rng.randint(0, 2)) for at in range(3)}
    key = rng.sample([*columns, "stream", "word", "ratio", "yes", "day"], rng.randint(0, 3))
    size = rng.choice((1.0, 2.5, 60.0, 3600.0))
    return QueryText(
        {f"a{at}": random_aggregate(rng, texts) for at in range(aggregates)},
        window_s=size,
        slide_s=rng.choice((None, None, size / 2, size / 5)),
        lateness_s=rng.choice((0.0, 1.0, 120.0)),
        where=texts.of(Kind.BOOL, rng.randint(1, 3)) if rng.random() < 0.6 else "",
        columns=columns,
        key=key,
    )


def random_join(rng: random.Random, texts: Draw, sides: Draw, aggregates: int) -> QueryText:
    """Return a join of stream 3 to the others; `texts` are over both sides, `sides` over one."""
    query = random_query(rng, texts, aggregates)
    kinds = [rng.choice(ALL) for _ in range(rng.randint(1, 2))]
    on = [[sides.of(kind, rng.randint(0, 1)) for _ in range(2)] for kind in kinds]
    named = [name for name in query.key if name in query.columns]
    return replace(query, right=[3], on=on, key=named)


def random_aggregate(rng: random.Random, texts: Draw) -> str:
    """Return one aggregate of an expression."""
    if rng.random() < 0.1:
        return "count(*)"
    if rng.random() < 0.3:
        return _of_extremes(rng, texts)
    if rng.random() < 0.5:
        name, kind = rng.choice(_OF_ANY), rng.choice(ALL)
    else:
        name, kind = rng.choice(_OF_NUMBERS), rng.choice(NUMBERS)
    more = {
        "top_k": f", {rng.randint(1, 4)}",
        "quantile": f", {rng.choice((0, 0.25, 0.5, 0.9, 1))}",
    }
    return f"{name}({texts.of(kind, rng.randint(0, 2))}{more.get(name, '')})"


def _of_extremes(rng: random.Random, texts: Draw) -> str:
    """Return an aggregate that is exact for the largest numbers, NaN and infinities."""
    column = rng.choice(("huge", "odd"))
    exact = ("sum", "mean") if column == "huge" else ("max", "min")
    name = rng.choice(("count", "min", "max", "count_distinct", "median", *exact))
    return f"{name}({texts.extreme(column)})"


def expected(
    client: duckdb.DuckDBPyConnection, computation: Computation, table: str
) -> dict[Any, list[Any]]:
    """Return the aggregates by window and key as DuckDB has them. Raises `duckdb.Error`."""
    where = "TRUE" if computation.where is None else sql_of(computation.where)
    if computation.join is None:
        rows = f"SELECT * FROM ({_placed(computation, table)}) WHERE {where}"
    else:
        rows = f"SELECT * FROM ({_joined(computation, computation.join, table)}) WHERE {where}"
    keys = [sql_of(one) for _, one in computation.key]
    values = [_sql_aggregate(one) for _, one in computation.aggregates]
    places = ", ".join(str(at + 1) for at in range(1 + len(keys)))
    text = f"SELECT {', '.join(['start', *keys, *values])} FROM ({rows}) GROUP BY {places}"
    return {
        (row[0], *_key(computation, row[1 : 1 + len(keys)])): [
            _finished(one, value)
            for (_, one), value in zip(computation.aggregates, row[1 + len(keys) :], strict=True)
        ]
        for row in client.execute(text).fetchall()
    }


def _placed(computation: Computation, table: str, more: str = "*", streams: str = "TRUE") -> str:
    """Return the records that are on time, each in all of its windows."""
    size, slide = computation.window.size_ms, computation.window.slide_ms
    starts = f"unnest(range(fdiv(ms - {size}, {slide}) + 1, fdiv(ms, {slide}) + 1)) * {slide}"
    return (
        f"SELECT {more}, {starts} AS start FROM {table} WHERE {streams} AND "
        f"(mark IS NULL OR ms >= mark - {computation.lateness_ms})"
    )


def _joined(computation: Computation, join: Join, table: str) -> str:
    """Return the pairs of records, with the columns of both under the names of their sides."""
    sides = []
    for side, columns in enumerate((join.left, join.right_columns)):
        named = [f'"{column.name.partition(".")[2]}" AS "{column.name}"' for column in columns]
        keys = [f"{sql_of(pair[side])} AS k{at}" for at, pair in enumerate(join.on)]
        right = ", ".join(map(str, sorted(join.right)))
        streams = f"stream {'IN' if side else 'NOT IN'} ({right})"
        sides.append(_placed(computation, table, ", ".join([*named, *keys]), streams))
    group_alike = " AND ".join(f"l.k{at} = r.k{at}" for at in range(len(join.on)))
    shown = ["l.start", *(f'l."{one.name}"' for one in join.left),
             *(f'r."{one.name}"' for one in join.right_columns)]  # fmt: skip
    return (
        f"SELECT {', '.join(shown)} FROM ({sides[0]}) l JOIN ({sides[1]}) r "
        f"ON l.start = r.start AND {group_alike}"
    )


def _key(computation: Computation, values: Sequence[Any]) -> list[Any]:
    pairs = zip(computation.key, values, strict=True)
    return [plain(value, one.kind) for (_, one), value in pairs]


def _sql_aggregate(aggregate: Aggregate) -> str:
    if aggregate.argument is None:
        return "count(*)"
    text = sql_of(aggregate.argument)
    if aggregate.function == "count_distinct":
        return f"count(DISTINCT {text})"
    if aggregate.function in _LISTED:
        return f"list({text}) FILTER (({text}) IS NOT NULL)"
    return f"{aggregate.function}({text})"


def _finished(aggregate: Aggregate, value: Any) -> Any:
    kind = Kind.INT if aggregate.argument is None else aggregate.argument.kind
    if aggregate.function in ("count", "count_distinct"):
        return value
    if aggregate.function not in _LISTED:
        return plain(value, kind)
    return _of_list(aggregate, kind, [plain(one, kind) for one in value or []])


def _of_list(aggregate: Aggregate, kind: Kind, values: list[Any]) -> Any:
    """Return an aggregate of all values of a window, by its definition."""
    match aggregate.function:
        case "top_k":
            counted = sorted(Counter(values).items(), key=lambda one: (-one[1], _order(one[0])))
            return counted[: int(aggregate.setting or 0)]
        case "quantile" | "median":
            ordered = sorted(values, key=_order)
            rank = math.floor((aggregate.setting or 0.0) * (len(values) - 1))
            return plain(float(ordered[rank]), Kind.FLOAT) if values else None
    return _statistic(aggregate.function, kind, values)


def _statistic(function: str, kind: Kind, values: list[Any]) -> Any:
    if not values:
        return None
    if kind is Kind.FLOAT:
        return _of_floats(function, [math.nan if one == "NaN" else one for one in values])
    units = [int(one * UNIT) if kind is Kind.DECIMAL else one for one in values]
    total, count = sum(units), len(units)
    if function == "sum":
        return plain(total, kind)
    if function == "mean":
        return plain(_half_even(total, count), kind) if kind is Kind.DECIMAL else total / count
    scale = UNIT if kind is Kind.DECIMAL else 1
    # Exact: n times the sum of squares less the square of the sum.
    spread = count * sum(one * one for one in units) - total * total
    return _root(function, spread / (count * (count - 1)) / scale**2) if count > 1 else None


def _of_floats(function: str, values: Sequence[float]) -> Any:
    count = len(values)
    if not all(map(math.isfinite, values)):
        total = sum(values)
        if function in ("sum", "mean"):
            return plain(total, Kind.FLOAT)
        return "NaN" if count > 1 else None
    total = math.fsum(values)
    if function in ("sum", "mean"):
        return total / (count if function == "mean" else 1) + 0.0
    mean = total / count
    spread = math.fsum((one - mean) ** 2 for one in values)
    return _root(function, spread / (count - 1)) if count > 1 else None


def _root(function: str, variance: float) -> float:
    return math.sqrt(variance) if function == "stddev" else variance


def _half_even(total: int, count: int) -> int:
    whole, rest = divmod(total, count)
    return whole + (2 * rest > count or (2 * rest == count and whole % 2 == 1))


def _order(value: Any) -> Any:
    if isinstance(value, str) and value == "NaN":
        return (1, 0)
    return (0, value)


def found_windows(rows: Sequence[WindowRow], computation: Computation) -> dict[Any, list[Any]]:
    """Return the engine's windows in the form of `expected`."""
    kinds = [one.kind for _, one in computation.key]
    return {
        (row.start_ms, *(plain(v, k) for v, k in zip(row.key.values(), kinds, strict=True))): [
            _shown(one, row.values[name]) for name, one in computation.aggregates
        ]
        for row in rows
    }


def _shown(aggregate: Aggregate, value: Any) -> Any:
    if value is None or aggregate.argument is None:
        return value
    if aggregate.function == "top_k":
        return [(plain(one, aggregate.argument.kind), count) for one, count in value]
    if isinstance(value, Decimal):
        return plain(value, Kind.DECIMAL)
    return plain(value, Kind.FLOAT) if isinstance(value, float) else value
