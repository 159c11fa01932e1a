"""Random expressions from the declarations of the language, by default over extreme values.

Every function and operator with every kind of argument that it declares is drawn, so a new one is
tried without a word here. Some texts get a part of SQL that the language may not have.
"""

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product
from typing import Any, Final

import pyarrow as pa

from controlplane.wire.aggregates.layout import ARROW
from controlplane.wire.language.functions import FUNCTIONS, OPERATORS
from controlplane.wire.language.tree import Kind
from tests.workers.pipeline.engine.differential.data import KINDS, LEAST, MOST

RECORDS: Final = 24
_YEAR_1, _YEAR_9999, _DAY_1, _DAY_9999 = (
    -62_135_596_800_000,
    253_402_300_799_999,
    -719_162,
    2_932_896,
)
_NINES: Final = Decimal("9" * 29 + "." + "9" * 9)
_VALUES: Final[Mapping[str, tuple[Kind, tuple[Any, ...]]]] = {
    "i": (Kind.INT, (0, 1, -1, 2, -2, 3, 7, 10, -100)),
    "wide": (Kind.INT, (LEAST, LEAST + 1, MOST, MOST - 1, 0, -1, 2**53 + 1, 2**31, -(2**31), 400)),
    "f": (Kind.FLOAT, (0.0, -0.0, 1.5, -2.5, 0.5, 2.675, -7.0, 1e3, 1.25)),
    "odd": (Kind.FLOAT, (math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 2.0**63, 0.1)),
    "d": (Kind.DECIMAL, tuple(map(Decimal, ("0", "0.5", "-0.5", "1.25", "-7", "100", "2.675")))),
    "vast": (Kind.DECIMAL, (_NINES, _NINES.copy_negate(), Decimal("1e-9"), Decimal(10**18))),
    "b": (Kind.BOOL, (True, False)),
    "s": (Kind.TEXT, ("", "a", "ab", "A", "ß", "a\u0308", "𝄞", " a ", "a%", "_", "a\nb", "x" * 99)),
    "t": (Kind.TIME, (0, -1, _YEAR_1, _YEAR_9999, 1_709_209_696_789, 951_782_400_000)),
    "day": (Kind.DATE, (0, -1, _DAY_1, _DAY_9999, 19_782, 11_016)),
}  # fmt: skip
COLUMNS: Final = {name: kind for name, (kind, _) in _VALUES.items()}
_LITERALS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.INT: ("0", "1", "-1", "+3", "1_000", "400", "-400", "9223372036854775807",
               "-9223372036854775808", "cast(2.5 as int)"),
    Kind.FLOAT: ("0.5", "-2.0", "1e3", "1e308", ".5", "2.", "cast('nan' as float)",
                 "'-infinity'::double", "-0.0"),
    Kind.DECIMAL: ("decimal '0.5'", "decimal '-3'", "cast('1e-9' as decimal(38, 9))",
                   "-decimal '12345678901234567890123456789.123456789'"),
    Kind.BOOL: ("true", "false"),
    Kind.TEXT: ("''", "'a'", "'%'", "'a%'", "'_b'", "'ß'", "'it''s'", "'a\\%'"),
    Kind.TIME: ("timestamp '0001-01-01'", "timestamp '9999-12-31 23:59:59.999'",
                "timestamp '2024-02-29 12:34:56.789'"),
    Kind.DATE: ("date '0001-01-01'", "date '9999-12-31'", "date '2024-02-29'"),
}  # fmt: skip
# With brackets, as what follows a literal may belong to its text.
_SMALL: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.INT: ("0", "1", "(-1)", "7", "1000"),
    Kind.FLOAT: ("0.5", "(-2.0)", "1e3", "cast('nan' as float)", "cast('-infinity' as float)",
                 "0.0"),
    Kind.DECIMAL: ("(decimal '0.5')", "(decimal '-3')", "(decimal '0.000000001')",
                   "(decimal '1234.56789')"),
    Kind.BOOL: ("true", "false"),
    Kind.TEXT: ("''", "'a'", "'ab'", "'ß'"),
    Kind.TIME: ("(timestamp '1970-01-01')", "(timestamp '2024-02-29 12:34:56.789')"),
    Kind.DATE: ("(date '1969-12-31')", "(date '2024-02-29')"),
}  # fmt: skip
# How operators are written, other than between two operands.
_WRITTEN: Final[Mapping[str, tuple[str, ...]]] = {
    "negative": ("- {0}",), "not": ("not {0}",),
    "is null": ("{0} is null", "{0} is not null", "{0} isnull", "{0} notnull"),
    "like": ("{0} like {1}", "{0} not like {1}"), "=": ("{0} = {1}", "{0} == {1}"),
    "<>": ("{0} <> {1}", "{0} != {1}"),
    "to int": ("cast({0} as int)", "{0}::bigint"),
    "to float": ("cast({0} as double)", "{0}::float"),
    "to decimal": ("cast({0} as decimal)", "{0}::decimal(38, 9)"),
    "to text": ("cast({0} as text)", "{0}::varchar"), "to date": ("cast({0} as date)",),
    "to time": ("cast({0} as timestamp)",),
}  # fmt: skip
# Libraries differ in the last digit of these: only around all else.
_INEXACT: Final = ("ln", "exp", "power")
# Parts of SQL that may follow an expression, and what may replace a part of it.
_AFTER: Final = (
    " filter (where true)", " over ()", " ignore nulls", " collate nocase", " escape 'a'", ";",
    " -- all", " asc", " is distinct from 1", "::varchar(3)", " is not true", " is unknown",
    " at time zone 'UTC'", "[1]",
)  # fmt: skip
_INSTEAD: Final = (
    (r"\blike\b", "ilike"), (r"\blike\b", "similar to"), (r"\blike\b", "glob"),
    (r"between", "between symmetric"), (r"\bcast\(", "try_cast("), (r"(\w)\(", r"\1(distinct "),
    (r"(\w)\(", r"\1(all "), (r"\)$", ",)"), (r"\)$", " order by 1)"), (r"'a", "E'a"),
    (r"=", "<=>"), (r"\bnot\b", "!"), (r"//", " div "), (r"=", "is not distinct from"),
)  # fmt: skip


def columns_of(rng: random.Random) -> dict[str, Any]:
    """Return columns of extreme values, some null."""
    return {
        name: pa.array([None if rng.random() < 0.15 else rng.choice(values)
                        for _ in range(RECORDS)], ARROW[kind])
        for name, (kind, values) in _VALUES.items()
    }  # fmt: skip


def _signatures() -> Iterator[tuple[Kind, str, tuple[Kind, ...]]]:
    """Yield the kind of the result, the name and the kinds of the arguments of each call."""
    for name, function in {**OPERATORS, **FUNCTIONS}.items():
        most = max(function.least, len(function.takes)) + (2 if function.repeats else 0)
        for count in range(max(function.least, 1), min(most, 3) + 1):
            takes = [function.takes[min(at, len(function.takes) - 1)] for at in range(count)]
            for kinds in product(*takes):
                gives = None if name == "case" and count % 2 == 0 else function.gives(kinds)
                if gives is not None:
                    yield gives, name, kinds


CALLS: Final = list(_signatures())


def _extreme_columns(kind: Kind) -> list[str]:
    return [name for name, of in COLUMNS.items() if of is kind]


def tame_columns(kind: Kind) -> list[str]:
    """Return the columns of random records whose sums and products stay within their type."""
    return [name for name, of in KINDS.items() if of is kind and name not in ("ts", "huge", "odd")]


class Draw:
    """Draws texts of expressions over some columns, by default over those of extreme values.

    With columns of its own, its literals are small, no argument is a bare null, and each is in
    brackets. `sides` are the prefixes of columns in a join.
    """

    def __init__(
        self,
        rng: random.Random,
        columns: Callable[[Kind], Sequence[str]] | None = None,
        sides: Sequence[str] = ("",),
    ) -> None:
        self._rng = rng
        self._columns, self._sides = columns or _extreme_columns, sides
        self._literals = _SMALL if columns else _LITERALS
        self._nulls, self._bare = (0.0, 0.0) if columns else (0.03, 0.2)

    def extreme(self, column: str) -> str:
        """Return a column with extreme values, of any side: `huge` or `odd`."""
        return f"{self._rng.choice(self._sides)}{column}"

    def expression(self) -> str:
        """Return any expression, some with a part that the language may not have."""
        rng = self._rng
        _, name, kinds = rng.choice(CALLS if rng.random() < 0.7 else self._calls(None))
        text = self._call(name, kinds, rng.randint(0, 2))
        return self._altered(text) if rng.random() < 0.2 else text

    def _calls(self, kind: Kind | None) -> Sequence[tuple[Kind, str, tuple[Kind, ...]]]:
        """Return calls of exact functions, each function as likely, whatever kinds it takes."""
        apart = _INEXACT if kind is None else (*_INEXACT, "hash")
        exact = [one for one in CALLS if one[1] not in apart and kind in (None, one[0])]
        name = self._rng.choice(sorted({one[1] for one in exact}))
        return [one for one in exact if one[1] == name]

    def _altered(self, text: str) -> str:
        rng = self._rng
        if rng.random() < 0.4:
            return text + rng.choice(_AFTER)
        return re.sub(*rng.choice(_INSTEAD), text, count=1)

    def of(self, kind: Kind, depth: int) -> str:
        """Return an expression of a kind, at most so many levels deep."""
        rng = self._rng
        if kind is Kind.NULL or rng.random() < self._nulls:
            return "null"
        if depth <= 0 or rng.random() < 0.3:
            names = self._columns(kind)
            is_column = names and rng.random() < 0.7
            return rng.choice(names if is_column else self._literals[kind])
        _, name, kinds = rng.choice(self._calls(kind))
        text = self._call(name, kinds, depth - 1)
        return text if rng.random() < self._bare else f"({text})"

    def _call(self, name: str, kinds: Sequence[Kind], depth: int) -> str:
        rng = self._rng
        if name == "in":
            return self._among(kinds[0], depth)
        given = [self.of(kind, depth) for kind in kinds]
        if name == "case":
            return self._case(kinds, given, depth)
        if name == "hash":
            # Equal values have equal hashes, and no others.
            return f"hash({given[0]}) = hash({self.of(kinds[0], 0)})"
        if name == ">=" and rng.random() < 0.5:
            word = rng.choice(("between", "not between"))
            return f"{given[0]} {word} {given[1]} and {self.of(kinds[1], depth)}"
        if name in FUNCTIONS:
            return f"{rng.choice((name, name, name.upper()))}({', '.join(given)})"
        return rng.choice(_WRITTEN.get(name, (f"{{0}} {name} {{1}}",))).format(*given)

    def _among(self, kind: Kind, depth: int) -> str:
        options = [self._rng.choice((*self._literals[kind], "null")) for _ in range(3)]
        word = self._rng.choice(("in", "not in"))
        return f"{self.of(kind, depth)} {word} ({', '.join(options)})"

    def _case(self, kinds: Sequence[Kind], given: list[str], depth: int) -> str:
        if len(given) == 1:
            return f"case when {self.of(Kind.BOOL, depth)} then {given[0]} end"
        other = self._rng.choice(("", f" else {given[-1]}"))
        if self._rng.random() < 0.5:
            kind = self._rng.choice(sorted({*COLUMNS.values()}))
            when = f"{self.of(kind, depth)} when {self.of(kind, 0)}"
            return f"case {when} then {given[1]}{other} end"
        return f"case when {given[0]} then {given[1]}{other} end"
