"""Statements of PostgreSQL on SQLite: their text, and the functions that SQLite lacks.

Times are texts in one form, which sorts as the times do: 2026-01-31 12:00:00.000+00:00.
"""

import calendar
import math
import re
import sqlite3
import statistics
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlglot import exp

from controlplane.formats.moments import read_moment
from controlplane.wire.language.grammar import BadExpression

TIME: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\+00:00")
_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d(:?\d\d)?)?"
)
_LENGTH: Final = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_CALLS: Final[dict[type, str]] = {
    exp.CurrentTimestamp: "now",
    exp.UnixToTime: "of_epoch",
    exp.Stddev: "stddev",
    exp.StddevSamp: "stddev",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "variance",
    exp.VariancePop: "variance_pop",
}
_CASTS: Final = {
    exp.DType.TIMESTAMPTZ: "time",
    exp.DType.TIMESTAMP: "time",
    exp.DType.DATE: "date",
}
_MONTHS: Final = {"month": 1, "year": 12}
_COMPARED: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)
_ABSENT: Final = (exp.AtTimeZone, exp.PercentileCont, exp.PercentileDisc, exp.LogicalAnd,
                  exp.LogicalOr, exp.Interval)  # fmt: skip


def sqlite_tree(
    text: str, tree: exp.Expr, tables: Mapping[str, str], times: Collection[str]
) -> exp.Expr:
    """Return a checked tree, which this changes, with functions that SQLite has.

    `tables`: what views are called on the connection; `times`: the names of columns that are times.
    Raises `BadExpression` for what SQLite cannot do, `ValueError` for a time that is none.
    """

    # The innermost first.
    for node in reversed(list(tree.walk())):
        if isinstance(node, exp.Table) and node.db:
            node.set("this", exp.to_identifier(tables[node.name], quoted=True))
            node.set("db", None)
        if node.args.get("offset") and not node.args.get("limit"):
            node.set("limit", exp.Limit(expression=exp.Literal.number(-1)))
        if isinstance(node, _COMPARED):
            _read_moments(node, times)
        new = _replaced(node)
        if new is not node:
            node.replace(new)
    for node in tree.walk():
        if isinstance(node, _ABSENT):
            why = f"SQLite has no {type(node).__name__}: use PostgreSQL for results"
            raise BadExpression.at_node(text, node, why)
    return tree


def _replaced(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression, exp.Interval):
        interval, sign = node.expression, -1 if isinstance(node, exp.Sub) else 1
        unit = interval.args.get("unit")
        length = f"{interval.this.name} {unit.name if unit else ''}"
        return _call("shifted", node.this, exp.Literal.string(length), exp.Literal.number(sign))
    if isinstance(node, exp.TimestampTrunc):
        return _call("trunc", exp.Literal.string(node.args["unit"].name), node.this)
    if isinstance(node, exp.Left | exp.Right):
        return _call(type(node).__name__.lower(), node.this, node.expression)
    if isinstance(node, exp.Extract):
        return _call("part", exp.Literal.string(node.this.name), node.expression)
    name = _CASTS.get(node.to.this, "") if isinstance(node, exp.Cast) else _CALLS.get(type(node))
    return _call(name, *([node.this] if node.this else ())) if name else node


def _call(name: str, *arguments: Any) -> exp.Expr:
    return exp.Anonymous(this=f"weir_{name}", expressions=list(arguments))


def _read_moments(node: exp.Expr, times: Collection[str]) -> None:
    """Give texts that are compared with times the form of times."""
    sides = [value for name in ("this", "expression", "low", "high", "expressions")
             for value in _listed(node.args.get(name))]  # fmt: skip
    if not any(_is_time(side, times) for side in sides):
        return
    for side in sides:
        if isinstance(side, exp.Literal) and side.is_string and _MOMENT.fullmatch(side.name):
            side.set("this", as_time(side.name))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _is_time(node: exp.Expr, times: Collection[str]) -> bool:
    if isinstance(node, exp.Column):
        return node.name in times
    return isinstance(node, exp.Anonymous) and node.name in _TIMES


def as_time(value: Any) -> str | None:
    """Return a moment in the form of times; raises `ValueError`."""
    return None if value is None else _form(_moment(str(value)))


def _moment(text: str) -> datetime:
    moment = read_moment(text.strip())
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _form(moment: datetime) -> str:
    return moment.isoformat(" ", "milliseconds")


def _shifted(value: Any, length: str, sign: int) -> str | None:
    if value is None:
        return None
    moment, seconds, months = _moment(value), 0.0, 0.0
    for number, unit in _LENGTH.findall(length):
        name = unit.lower().rstrip("s")
        seconds += sign * float(number) * _SECONDS.get(name, 0)
        months += sign * float(number) * _MONTHS.get(name, 0)
    years, month = divmod(moment.month - 1 + round(months), 12)
    year = moment.year + years
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return _form(moment.replace(year=year, month=month + 1, day=day) + timedelta(seconds=seconds))


def _trunc(unit: str, value: Any) -> str | None:
    if value is None:
        return None
    moment, unit = _moment(value), unit.lower()
    if unit == "week":
        moment, unit = moment - timedelta(days=moment.weekday()), "day"
    parts = {"year": 1, "month": 2, "day": 3, "hour": 4, "minute": 5, "second": 6}
    kept = moment.timetuple()[: parts[unit]]
    return _form(datetime(*(*kept, 1, 1)[: max(3, len(kept))], tzinfo=UTC))  # type: ignore[arg-type,misc]


def _part(part: str, value: Any) -> float | None:
    if value is None:
        return None
    moment, part = _moment(value), part.lower()
    if part == "epoch":
        return moment.timestamp()
    if part in ("dow", "isodow"):
        return moment.isoweekday() % 7 if part == "dow" else moment.isoweekday()
    if part == "second":
        return moment.second + moment.microsecond / 1e6
    return int(getattr(moment, part))


def _aggregate(function: Callable[[list[float]], float], least: int) -> type:
    """Return a class of SQLite for an aggregate of at least so many numbers."""

    class Numbers:
        def __init__(self) -> None:
            self.values: list[float] = []

        def step(self, value: Any) -> None:
            if isinstance(value, int | float):
                self.values.append(value)

        def finalize(self) -> float | None:
            return function(self.values) if len(self.values) >= least else None

    return Numbers


_AGGREGATES: Final = {
    "weir_stddev": (statistics.stdev, 2),
    "weir_stddev_pop": (statistics.pstdev, 1),
    "weir_variance": (statistics.variance, 2),
    "weir_variance_pop": (statistics.pvariance, 1),
}
_TIMES: Final = ("weir_now", "weir_time", "weir_of_epoch", "weir_shifted", "weir_trunc")
_FUNCTIONS: Final[dict[str, tuple[int, Callable[..., Any]]]] = {
    "weir_now": (0, lambda: _form(datetime.now(UTC))),
    "weir_time": (1, as_time),
    "weir_date": (1, lambda value: None if value is None else str(_moment(str(value)).date())),
    "weir_of_epoch": (1, lambda s: None if s is None else _form(datetime.fromtimestamp(s, UTC))),
    "weir_shifted": (3, _shifted),
    "weir_trunc": (2, _trunc),
    "weir_part": (2, _part),
    "weir_left": (2, lambda text, n: None if text is None else str(text)[:n]),
    "weir_right": (2, lambda text, n: None if text is None else str(text)[-n:] if n else ""),
    "ceil": (1, lambda value: None if value is None else math.ceil(value)),
    "floor": (1, lambda value: None if value is None else math.floor(value)),
    "sqrt": (1, lambda value: None if value is None else math.sqrt(value)),
    "exp": (1, lambda value: None if value is None else math.exp(value)),
    "ln": (1, lambda value: None if value is None else math.log(value)),
    "log": (1, lambda value: None if value is None else math.log10(value)),
    "power": (2, lambda a, b: None if a is None or b is None else math.pow(a, b)),
}
NAMES: Final = frozenset({*_FUNCTIONS, *_AGGREGATES})


def add_functions(connection: sqlite3.Connection) -> None:
    """Add the functions to a connection."""
    for name, (count, function) in _FUNCTIONS.items():
        connection.create_function(name, count, function, deterministic=name != "weir_now")
    for name, (function, least) in _AGGREGATES.items():
        connection.create_aggregate(name, 1, _aggregate(function, least))
