"""The computation of a query: as submitted (text), and as the data plane runs it (checked).

A query selects records of streams (`where`), groups them (`key`) and aggregates them by window of
event time. A join first pairs the records of two sides.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from controlplane.wire.errors import WireError
from controlplane.wire.language.aggregates import Aggregate, aggregate_of
from controlplane.wire.language.functions import common
from controlplane.wire.language.grammar import BadExpression
from controlplane.wire.language.parse import DEEPEST, no_column, parsed, read_text
from controlplane.wire.language.tree import Call, Column, Expression, Kind, columns_in, size_of
from controlplane.wire.query_text import QueryText

# The column of every stream with the name of the stream.
STREAM: Final = "stream"
# The prefixes of the columns of a join's sides.
SIDES: Final = ("a", "b")
# The maximum number of sliding windows of a record.
MOST_WINDOWS: Final = 1_000
# Columns may use each other, so a short text may expand to a huge expression.
MOST_OPERATIONS: Final = 5_000


class BadQuery(WireError):
    """An invalid query: messages by field."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = dict(fields)
        super().__init__("; ".join(f"{name}: {why}" for name, why in fields.items()))


@dataclass(frozen=True, slots=True)
class Window:
    """Windows of event time: length, slide and length of their panes (ms)."""

    size_ms: int
    slide_ms: int

    @property
    def pane_ms(self) -> int:
        """Return the length of the panes of all windows in ms (paper 001, section 4.2)."""
        return math.gcd(self.size_ms, self.slide_ms)

    @property
    def panes(self) -> int:
        """Return the number of panes in a window."""
        return self.size_ms // self.pane_ms


@dataclass(frozen=True, slots=True)
class Join:
    """The pairs of a join: the streams of its right side, and the equal expressions.

    `on`: expressions over the records of either side; `left`, `right_columns`: the columns of each
    side that the query looks at.
    """

    right: frozenset[int]
    on: tuple[tuple[Expression, Expression], ...]
    left: tuple[Column, ...]
    right_columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Computation:
    """The computation of a query; equal ones are evaluated once for all queries."""

    where: Expression | None
    key: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    window: Window
    lateness_ms: int
    join: Join | None = None

    def task_key(self, stream: int) -> tuple[Expression, ...]:
        """Return the expressions of the key that assigns a record of a stream to its task."""
        if self.join is None:
            return tuple(item for _, item in self.key)
        return tuple(pair[stream in self.join.right] for pair in self.join.on)


def computation_of(
    query: QueryText, columns: Mapping[str, Kind], right: Mapping[str, Kind] | None = None
) -> Computation:
    """Check a query against the columns of its streams. Raises `BadQuery` with all errors.

    `right`: the columns of a join's right side, by default those of the left.
    """
    joins = is_join(query)
    reader = _Reader(usable_columns(query, columns, right))
    reader.take_columns(query.columns)
    where = reader.where(query.where) if query.where.strip() else None
    key = reader.key(query.key)
    aggregates = reader.aggregates(query.aggregates)
    window = reader.window(query.window_s, query.slide_s)
    lateness = reader.milliseconds("lateness_s", query.lateness_s, least=0)
    on = reader.on(query, _sides(columns, right)) if joins else ()
    if reader.faults:
        raise BadQuery(reader.faults)
    result = Computation(where, key, aggregates, window, lateness)
    return replace(result, join=_join(query, on, result)) if joins else result


def is_join(query: QueryText) -> bool:
    """Return whether a query is a join, even an incomplete one."""
    return bool(query.right or query.on)


def usable_columns(
    query: QueryText, columns: Mapping[str, Kind], right: Mapping[str, Kind] | None = None
) -> dict[str, Kind]:
    """Return the columns of the streams that a query may use; arguments as `computation_of`."""
    sides = _sides(columns, right)
    if not is_join(query):
        return sides[0]
    return {
        f"{side}.{name}": kind
        for side, own in zip(SIDES, sides, strict=True)
        for name, kind in own.items()
    }


def _sides(
    left: Mapping[str, Kind], right: Mapping[str, Kind] | None
) -> tuple[dict[str, Kind], dict[str, Kind]]:
    """Return the columns of each side, the stream among them."""
    other = left if right is None else right
    return {**left, STREAM: Kind.INT}, {**other, STREAM: Kind.INT}


def _join(
    query: QueryText, on: tuple[tuple[Expression, Expression], ...], computation: Computation
) -> Join:
    every = [computation.where, *(item for _, item in computation.key),
             *(aggregate.argument for _, aggregate in computation.aggregates)]  # fmt: skip
    used = sorted({column for value in every if value is not None for column in columns_in(value)},
                  key=lambda column: column.name)  # fmt: skip
    left, right = (
        tuple(column for column in used if column.name.startswith(f"{side}.")) for side in SIDES
    )
    return Join(frozenset(query.right), on, left, right)


class _Reader:
    """A parser of the parts of a query, which collects errors."""

    def __init__(self, columns: Mapping[str, Kind]) -> None:
        self.kinds = dict(columns)
        self.named: dict[str, Expression] = {}
        self.sizes: dict[str, tuple[int, int]] = {}
        self.too_large: set[str] = set()
        self.faults: dict[str, str] = {}

    def take_columns(self, columns: Mapping[str, str]) -> None:
        for name, text in columns.items():
            where = f"columns.{name}"
            if not name.isidentifier():
                self.faults[where] = "is not a name: letters, digits and _ only"
            elif name in self.kinds:
                self.faults[where] = f"there is a column {name} already"
            else:
                self._name(where, name, text)

    def _name(self, where: str, name: str, text: str) -> None:
        expression = self.parsed(where, text, self.kinds)
        if expression is None:
            return
        if expression.kind is Kind.NULL:
            self.faults[where] = "is null always"
        self.kinds[name] = expression.kind
        if self._fits(where, text, expression):
            self.sizes[name] = size_of(expression, self.sizes)
            self.named[name] = inlined(expression, self.named)
        else:
            self.too_large.add(name)

    def expression(self, where: str, text: str) -> Expression | None:
        result = self.parsed(where, text, self.kinds)
        if result is None or not self._fits(where, text, result):
            return None
        return inlined(result, self.named)

    def parsed(self, where: str, text: str, kinds: Mapping[str, Kind]) -> Expression | None:
        try:
            return parsed(text, kinds)
        except BadExpression as error:
            self.faults[where] = error.fault
            return None

    def _fits(self, where: str, text: str, expression: Expression) -> bool:
        """Return whether an expression stays small with its named columns inserted.

        An error is reported once, not again for each column that uses the expression.
        """
        if self.too_large.intersection(column.name for column in columns_in(expression)):
            return False
        operations, depth = size_of(expression, self.sizes)
        if operations <= MOST_OPERATIONS and depth <= DEEPEST:
            return True
        why = "stands for too large an expression after its named columns are inserted"
        self.faults[where] = BadExpression(text, why).fault
        return False

    def where(self, text: str) -> Expression | None:
        result = self.expression("where", text)
        if result is not None and result.kind not in (Kind.BOOL, Kind.NULL):
            self.faults["where"] = f"must be true or false for each record, but is {result.kind}"
        return result

    def key(self, names: Sequence[str]) -> tuple[tuple[str, Expression], ...]:
        result: dict[str, Expression] = {}
        for name in names:
            if name not in self.kinds:
                self.faults["key"] = no_column(name, self.kinds)
            else:
                result[name] = self.named.get(name, Column(name, self.kinds[name]))
        return tuple(result.items())

    def aggregates(self, texts: Mapping[str, str]) -> tuple[tuple[str, Aggregate], ...]:
        result = []
        for name, text in texts.items():
            where = f"aggregates.{name}"
            try:
                aggregate = read_text(text, self.kinds, aggregate_of)
            except BadExpression as error:
                self.faults[where] = error.fault
                continue
            if aggregate.argument is not None:
                if not self._fits(where, text, aggregate.argument):
                    continue
                argument = inlined(aggregate.argument, self.named)
                aggregate = replace(aggregate, argument=argument)
            result.append((name, aggregate))
        if not texts:
            self.faults["aggregates"] = "names none; count(*) counts records"
        return tuple(result)

    def on(
        self, query: QueryText, sides: tuple[Mapping[str, Kind], Mapping[str, Kind]]
    ) -> tuple[tuple[Expression, Expression], ...]:
        """Return the pairs that must be equal, each over its own side, without named columns."""
        if not query.right:
            self.faults["right"] = "names no stream: a join has a right side"
        if not query.on:
            self.faults["on"] = "names no pair of columns that must be equal"
        result = []
        for index, pair in enumerate(query.on):
            where = f"on.{index}"
            if len(pair) != len(SIDES):
                self.faults[where] = "must be two expressions: of the left and of the right side"
                continue
            left = self.parsed(f"{where}.left", pair[0], sides[0])
            right = self.parsed(f"{where}.right", pair[1], sides[1])
            if left is None or right is None:
                continue
            kind = common((left.kind, right.kind))
            if kind is None or Kind.NULL in (left.kind, right.kind):
                self.faults[where] = (
                    f"compares {left.kind} with {right.kind}: both sides must be of one kind, or "
                    "numbers"
                )
            else:
                result.append((widened(left, kind), widened(right, kind)))
        return tuple(result)

    def window(self, size_s: float, slide_s: float | None) -> Window:
        size = self.milliseconds("window_s", size_s, least=1)
        slide = size if slide_s is None else self.milliseconds("slide_s", slide_s, least=1)
        if slide > size > 0:
            self.faults["slide_s"] = "is longer than the window: records between would be lost"
        elif slide > 0 and size // slide > MOST_WINDOWS:
            self.faults["slide_s"] = f"puts a record into more than {MOST_WINDOWS:,} windows"
        return Window(max(size, 1), max(slide, 1))

    def milliseconds(self, where: str, seconds: float, least: int) -> int:
        ms = round(seconds * 1000) if math.isfinite(seconds * 1000) else -1
        if ms < least or not math.isclose(ms, seconds * 1000, abs_tol=1e-6):
            self.faults[where] = f"must be whole milliseconds, at least {least / 1000:g} s"
            return 0
        return ms


def widened(expression: Expression, kind: Kind) -> Expression:
    """Return an expression over numbers as one of a kind that holds them."""
    if expression.kind is kind:
        return expression
    return Call(f"to {kind}", (expression,), kind)


def inlined(expression: Expression, named: Mapping[str, Expression]) -> Expression:
    """Return the expression with named columns replaced by their expressions."""
    match expression:
        case Column() if expression.name in named:
            return named[expression.name]
        case Call():
            arguments = tuple(inlined(argument, named) for argument in expression.arguments)
            return replace(expression, arguments=arguments)
    return expression
