"""Random expressions of the language, by the kind that they give."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from controlplane.wire.language.tree import Kind
from tests.workers.pipeline.engine.differential.data import COLUMNS

INT, FLOAT, DECIMAL, BOOL = Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.BOOL
TEXT, TIME, DATE = Kind.TEXT, Kind.TIME, Kind.DATE
ALL: Final = (INT, FLOAT, DECIMAL, BOOL, TEXT, TIME, DATE)
NUMBERS: Final = (INT, FLOAT, DECIMAL)

_LITERALS: Final[Mapping[Kind, tuple[str, ...]]] = {
    INT: ("0", "1", "-1", "7", "1000"),
    FLOAT: ("0.5", "-2.0", "1e3", "cast('nan' as float)", "cast('-infinity' as float)", "0.0"),
    DECIMAL: ("decimal '0.5'", "decimal '-3'", "decimal '0.000000001'", "decimal '1234.56789'"),
    BOOL: ("true", "false"),
    TEXT: ("''", "'a'", "'ab'", "'ß'"),
    TIME: ("timestamp '1970-01-01'", "timestamp '2024-02-29 12:34:56.789'"),
    DATE: ("date '1969-12-31'", "date '2024-02-29'"),
}
# How an expression of a kind is made of others: `{int}` stands for any expression of that kind.
_SHAPES: Final[Mapping[Kind, tuple[str, ...]]] = {
    INT: (
        "({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} // {int})",
        "({int} % {int})", "(- {int})", "abs({int})", "ceil({float})", "floor({float})",
        "floor({decimal})", "ceil({decimal})", "cast({float} as int)", "cast({decimal} as int)",
        "cast({bool} as int)", "length({text})", "epoch_ms({time})", "year({time})",
        "month({date})", "day({date})", "hour({time})", "minute({time})", "second({time})",
        "day_of_week({date})", "({time} - {time})", "({date} - {date})",
    ),
    FLOAT: (
        "({float} + {float})", "({float} - {int})", "({float} * {decimal})", "({float} / {float})",
        "({int} / {int})", "({float} // {float})", "({float} % {int})", "(- {float})",
        "abs({float})", "round({float})", "sqrt({float})", "cast({int} as float)",
        "cast({decimal} as float)", "power({float}, 2)",
    ),
    DECIMAL: (
        "({decimal} + {decimal})", "({decimal} - {int})", "({decimal} * {decimal})",
        "({decimal} / {decimal})", "({decimal} / {int})", "({decimal} // {decimal})",
        "({int} % {decimal})", "(- {decimal})", "abs({decimal})", "round({decimal})",
        "round({decimal}, 2)", "round({decimal}, -3)", "cast({int} as decimal)",
    ),
    BOOL: (
        "({bool} and {bool})", "({bool} or {bool})", "(not {bool})", "({same} is null)",
        "({same} is not null)", "({text} like '%a%')", "({text} like '_')",
        "starts_with({text}, {text})", "contains({text}, {text})", "isnan({float})",
        "isfinite({float})", "({number} < {number})", "({number} = {number})",
        "({number} >= {number})", "({same} = {same})", "({same} <> {same})", "({same} < {same})",
        "({same} <= {same})", "({same} > {same})", "({same} between {same} and {same})",
        "({int} in (1, 7, -1))", "({float} in (0, cast('nan' as float), 0.5))",
        "({text} in ('a', 'ß', null))", "({bool} is true)", "({bool} is not false)",
        "({decimal} in (1, decimal '0.5'))",
    ),
    TEXT: (
        "lower({text})", "upper({text})", "trim({text})", "substr({text}, {int})",
        "substr({text}, 2, 1)", "substr({text}, {int}, {int})", "concat({text}, {text})",
        "({text} || '-' || {text})", "cast({int} as text)", "cast({bool} as text)",
        "cast({date} as text)",
    ),
    TIME: ("cast({date} as timestamp)",),
    DATE: ("cast({time} as date)",),
}  # fmt: skip
_ANY: Final = (
    "case when {bool} then {same} else {same} end", "case when {bool} then {same} end",
    "case {text} when 'a' then {same} when 'ab' then {same} else {same} end",
    "coalesce({same}, {same})", "nullif({same}, {same})", "greatest({same}, {same})",
    "least({same}, {same}, {same})",
)  # fmt: skip


class Texts:
    """Draws expressions over some columns."""

    def __init__(
        self,
        rng: random.Random,
        columns: Callable[[Kind], list[str]],
        sides: Sequence[str] = ("",),
    ) -> None:
        self._rng = rng
        self._columns = columns
        self._sides = sides

    def extreme(self, column: str) -> str:
        """Return a column with extreme values, of any side: `huge` or `odd`."""
        return f"{self._rng.choice(self._sides)}{column}"

    def expression(self, kind: Kind, depth: int) -> str:
        """Return an expression of a kind, at most so many levels deep."""
        rng = self._rng
        if depth <= 0 or rng.random() < 0.2:
            return self._leaf(kind)
        shape = rng.choice(_ANY if rng.random() < 0.25 else _SHAPES[kind])
        return self._filled(shape, kind if kind is not BOOL else rng.choice(ALL), kind, depth)

    def _leaf(self, kind: Kind) -> str:
        columns = self._columns(kind)
        if columns and self._rng.random() < 0.75:
            return self._rng.choice(columns)
        return self._rng.choice(_LITERALS[kind])

    def _filled(self, shape: str, same: Kind, kind: Kind, depth: int) -> str:
        if shape in _ANY:
            same = kind
        parts = shape.split("{")
        text = parts[0]
        for part in parts[1:]:
            name, _, rest = part.partition("}")
            wanted = same if name == "same" else self._kind(name)
            text += self.expression(wanted, depth - 1) + rest
        return text

    def _kind(self, name: str) -> Kind:
        return self._rng.choice(NUMBERS) if name == "number" else Kind(name)


def columns_of(kind: Kind) -> list[str]:
    """Return the columns of a kind."""
    return [name for name, (of, _) in COLUMNS.items() if of is kind]


def tame_columns(kind: Kind) -> list[str]:
    """Return the columns of a kind whose sums and products stay within their type."""
    return [name for name in columns_of(kind) if name not in ("huge", "odd")]
