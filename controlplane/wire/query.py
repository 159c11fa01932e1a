"""What a query computes: as it is submitted (text), and as the data plane runs it (checked).

A query selects records of one or several streams (`where`), groups them (`key`), cuts event time
into windows and aggregates. A join pairs the records of two sides first.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from controlplane.wire.errors import WireError
from controlplane.wire.language.aggregates import Aggregate, aggregate_parsed
from controlplane.wire.language.errors import BadExpression
from controlplane.wire.language.parse import parsed
from controlplane.wire.language.tree import Call, Column, Expression, Kind

# The stream of a record, as a column that every stream has.
STREAM: Final = "stream"
EVENT_TIME: Final = "ts"
DEFAULT_LATENESS_S: Final = 120.0
# A record is in at most so many sliding windows.
MOST_WINDOWS: Final = 1_000


class BadQuery(WireError):
    """A query that cannot run: messages by the field that is wrong, like those of a form."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {why}" for name, why in fields.items()))


@dataclass(frozen=True)
class QueryText:
    """A query as it is submitted.

    `where`: a predicate, empty for all records. `columns`: named expressions, usable in the
    others. `key`: columns to group by. `aggregates`: by the name of their result. Windows are as
    long as `window_s` and begin every `slide_s` (None: one behind the other). Records that are
    older than the newest before them by more than `lateness_s` are late.
    """

    aggregates: Mapping[str, str]
    window_s: float = 60.0
    slide_s: float | None = None
    lateness_s: float = DEFAULT_LATENESS_S
    where: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    key: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the query as JSON values, defaults left out."""
        row = {
            "aggregates": dict(self.aggregates),
            "window_s": self.window_s,
            "slide_s": self.slide_s,
            "lateness_s": self.lateness_s,
            "where": self.where,
            "columns": dict(self.columns),
            "key": list(self.key),
        }
        default = QueryText({})
        return {
            name: value
            for name, value in row.items()
            if name == "aggregates" or value != _plain(getattr(default, name))
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "QueryText":
        """Return the query that `to_json` wrote."""
        return cls(**row)


def mice(value: str, window_s: float) -> QueryText:
    """Return the small query that most are: per stream and window, the numbers of one column."""
    aggregates = {
        "count": "count(*)",
        "n": f"count({value})",
        "mean": f"mean({value})",
        "minimum": f"min({value})",
        "maximum": f"max({value})",
    }
    return QueryText(aggregates, window_s=window_s, key=(STREAM,))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class Window:
    """Windows of event time: length, distance of their beginnings, panes they are made of (ms)."""

    size_ms: int
    slide_ms: int

    @property
    def pane_ms(self) -> int:
        """Return the largest span of which all windows are made (paper 001, section 4.2)."""
        return math.gcd(self.size_ms, self.slide_ms)

    @property
    def panes(self) -> int:
        """Return the number of panes in a window."""
        return self.size_ms // self.pane_ms


@dataclass(frozen=True, slots=True)
class Computation:
    """What is computed of every record of a query; equal ones are computed once for all queries."""

    where: Expression | None
    key: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    window: Window
    lateness_ms: int


def computation_of(query: QueryText, columns: Mapping[str, Kind]) -> Computation:
    """Check a query against the columns of its streams. Raises `BadQuery`, with every fault."""
    reader = _Reader({**columns, STREAM: Kind.INT})
    reader.take_columns(query.columns)
    where = reader.where(query.where) if query.where.strip() else None
    key = reader.key(query.key)
    aggregates = reader.aggregates(query.aggregates)
    window = reader.window(query.window_s, query.slide_s)
    lateness = reader.milliseconds("lateness_s", query.lateness_s, least=0)
    if reader.faults:
        raise BadQuery(reader.faults)
    return Computation(where, key, aggregates, window, lateness)


class _Reader:
    """Reads the parts of one query and collects what is wrong with them."""

    def __init__(self, columns: Mapping[str, Kind]) -> None:
        self.kinds = dict(columns)
        self.named: dict[str, Expression] = {}
        self.faults: dict[str, str] = {}

    def take_columns(self, columns: Mapping[str, str]) -> None:
        for name, text in columns.items():
            where = f"columns.{name}"
            if not name.isidentifier():
                self.faults[where] = "is no name: letters, digits and _ only"
            elif name in self.kinds:
                self.faults[where] = f"there is a column {name} already"
            elif (expression := self.expression(where, text)) is not None:
                if expression.kind is Kind.NULL:
                    self.faults[where] = "is null always"
                self.kinds[name], self.named[name] = expression.kind, expression

    def expression(self, where: str, text: str) -> Expression | None:
        try:
            return inlined(parsed(text, self.kinds), self.named)
        except BadExpression as error:
            self.faults[where] = _shown(error)
            return None

    def where(self, text: str) -> Expression | None:
        found = self.expression("where", text)
        if found is not None and found.kind not in (Kind.BOOL, Kind.NULL):
            self.faults["where"] = f"must be true or false for each record, but is {found.kind}"
        return found

    def key(self, names: Sequence[str]) -> tuple[tuple[str, Expression], ...]:
        found: dict[str, Expression] = {}
        for name in names:
            if name not in self.kinds:
                known = ", ".join(self.kinds)
                self.faults["key"] = f"there is no column {name}; there are {known}"
            elif self.kinds[name] is Kind.FLOAT:
                self.faults["key"] = f"{name} is float; group by whole numbers, text or time"
            else:
                found[name] = self.named.get(name, Column(name, self.kinds[name]))
        return tuple(found.items())

    def aggregates(self, texts: Mapping[str, str]) -> tuple[tuple[str, Aggregate], ...]:
        found = []
        for name, text in texts.items():
            where = f"aggregates.{name}"
            try:
                aggregate = aggregate_parsed(text, self.kinds)
            except BadExpression as error:
                self.faults[where] = _shown(error)
                continue
            if aggregate.argument is not None:
                argument = inlined(aggregate.argument, self.named)
                aggregate = replace(aggregate, argument=argument)
            found.append((name, aggregate))
        if not texts:
            self.faults["aggregates"] = "names none; count(*) counts records"
        return tuple(found)

    def window(self, size_s: float, slide_s: float | None) -> Window:
        size = self.milliseconds("window_s", size_s, least=1)
        slide = size if slide_s is None else self.milliseconds("slide_s", slide_s, least=1)
        if slide > size > 0:
            self.faults["slide_s"] = "is longer than the window: records between would be lost"
        elif slide > 0 and size // slide > MOST_WINDOWS:
            self.faults["slide_s"] = f"puts a record into more than {MOST_WINDOWS:,} windows"
        return Window(max(size, 1), max(slide, 1))

    def milliseconds(self, where: str, seconds: float, least: int) -> int:
        ms = round(seconds * 1000) if math.isfinite(seconds) else -1
        if ms < least or not math.isclose(ms, seconds * 1000, abs_tol=1e-6):
            self.faults[where] = f"must be whole milliseconds, at least {least / 1000:g} s"
            return 0
        return ms


def _shown(error: BadExpression) -> str:
    return f"{error}\n{error.pointed()}"


def inlined(expression: Expression, named: Mapping[str, Expression]) -> Expression:
    """Return the expression with named columns replaced by what they stand for."""
    match expression:
        case Column() if expression.name in named:
            return named[expression.name]
        case Call():
            arguments = tuple(inlined(one, named) for one in expression.arguments)
            return replace(expression, arguments=arguments)
    return expression
