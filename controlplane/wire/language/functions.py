"""The functions and operators of the language: the kinds of their arguments and results.

The engine of the data plane computes them. The result for null is null, with noted exceptions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.wire.language.tree import NUMBERS, Kind, widest_number

ANY: Final = (*NUMBERS, Kind.BOOL, Kind.TEXT, Kind.TIME, Kind.DATE)
_TEXT: Final = (Kind.TEXT,)
_BOOL: Final = (Kind.BOOL,)
_TIME: Final = (Kind.TIME,)
_DAY: Final = (Kind.TIME, Kind.DATE)
_INT: Final = (Kind.INT,)

Kinds = Sequence[Kind]


@dataclass(frozen=True)
class Function:
    """Parameters and result of a function.

    `takes`: the kinds that each parameter may have; `least` of them must be given, and the last
    one may be repeated where `repeats`. `gives`: the kind of the result from those of the
    arguments, None if they do not fit together.
    """

    takes: tuple[Kinds, ...]
    gives: Callable[[Kinds], Kind | None]
    about: str
    least: int
    repeats: bool = False


def _of(kind: Kind) -> Callable[[Kinds], Kind]:
    return lambda kinds: kind


def number(kinds: Kinds) -> Kind:
    """Return the widest of the kinds: whole numbers become decimals, and both become floats."""
    return widest_number(kinds) or Kind.FLOAT


def _quotient(kinds: Kinds) -> Kind:
    return Kind.DECIMAL if number(kinds) is Kind.DECIMAL else Kind.FLOAT


def _rounded(kinds: Kinds) -> Kind:
    return Kind.DECIMAL if kinds[0] is Kind.DECIMAL else Kind.FLOAT


def common(kinds: Kinds) -> Kind | None:
    """Return the kind that holds all of these kinds, None if there is none."""
    known = {kind for kind in kinds if kind is not Kind.NULL}
    if len(known) == 1:
        return known.pop()
    return widest_number(known) if known else None


def _compared(kinds: Kinds) -> Kind | None:
    return Kind.BOOL if common(kinds) or set(kinds) == {Kind.NULL} else None


def _difference(kinds: Kinds) -> Kind | None:
    """Return the kind of a difference: of numbers, of times (in ms) or of dates (in days)."""
    for kind in (Kind.TIME, Kind.DATE):
        if kind in kinds:
            return Kind.INT if set(kinds) <= {kind, Kind.NULL} else None
    return number(kinds)


def _switched(kinds: Kinds) -> Kind | None:
    """Conditions and values in turn, then what else: the values' common kind."""
    conditions, values = kinds[:-1:2], [*kinds[1::2], kinds[-1]]
    return common(values) if set(conditions) <= {Kind.BOOL, Kind.NULL} else None


def _function(
    gives: Callable[[Kinds], Kind | None],
    about: str,
    *takes: Kinds,
    least: int | None = None,
    repeats: bool = False,
) -> Function:
    return Function(takes, gives, about, len(takes) if least is None else least, repeats)


_SUBTRACTED: Final = (*NUMBERS, Kind.TIME, Kind.DATE)
_to_float, _to_int, _to_bool, _to_text = map(_of, (Kind.FLOAT, Kind.INT, Kind.BOOL, Kind.TEXT))
_to_decimal, _to_time, _to_date = map(_of, (Kind.DECIMAL, Kind.TIME, Kind.DATE))

# Operators have the names that messages use for them.
OPERATORS: Final[dict[str, Function]] = {
    "+": _function(number, "sum", NUMBERS, NUMBERS),
    "-": _function(
        _difference,
        "difference; milliseconds between times, days between dates",
        _SUBTRACTED,
        _SUBTRACTED,
    ),
    "*": _function(number, "product", NUMBERS, NUMBERS),
    "/": _function(_quotient, "quotient; null for a divisor of 0", NUMBERS, NUMBERS),
    "//": _function(number, "quotient rounded down; null for 0", NUMBERS, NUMBERS),
    "%": _function(number, "rest of //, with the divisor's sign; null for 0", NUMBERS, NUMBERS),
    "negative": _function(number, "the number with the other sign", NUMBERS),
    "=": _function(_compared, "equal", ANY, ANY),
    "<>": _function(_compared, "not equal", ANY, ANY),
    "<": _function(_compared, "less", ANY, ANY),
    "<=": _function(_compared, "at most", ANY, ANY),
    ">": _function(_compared, "more", ANY, ANY),
    ">=": _function(_compared, "at least", ANY, ANY),
    "and": _function(_to_bool, "both; null counts as unknown", _BOOL, _BOOL),
    "or": _function(_to_bool, "either; null counts as unknown", _BOOL, _BOOL),
    "not": _function(_to_bool, "the opposite", _BOOL),
    "is null": _function(_to_bool, "whether there is no value; never null", ANY),
    "in": _function(_compared, "whether it is one of the constants", ANY, ANY, repeats=True),
    "like": _function(_to_bool, "% stands for any text, _ for a character", _TEXT, _TEXT),
    "case": _function(_switched, "the value of the first condition that holds", ANY, repeats=True),
    "to int": _function(
        _to_int, "as whole number, rounded towards 0; null for NaN", (*NUMBERS, Kind.BOOL)
    ),
    "to float": _function(_to_float, "as number", (*NUMBERS, Kind.BOOL)),
    "to decimal": _function(
        _to_decimal,
        "with 9 digits after the point, rounded half to even; null for NaN",
        (*NUMBERS, Kind.BOOL),
    ),
    "to text": _function(_to_text, "as text", ANY),
    "to time": _function(_to_time, "the beginning of a date, UTC", _DAY),
    "to date": _function(_to_date, "the day of a time, UTC", _DAY),
}

FUNCTIONS: Final[dict[str, Function]] = {
    "abs": _function(number, "without sign", NUMBERS),
    "ceil": _function(_to_int, "rounded up", NUMBERS),
    "floor": _function(_to_int, "rounded down", NUMBERS),
    "round": _function(
        _rounded, "rounded to this number of digits, half to even", NUMBERS, _INT, least=1
    ),
    "sqrt": _function(_to_float, "square root; null below 0", NUMBERS),
    "power": _function(_to_float, "power", NUMBERS, NUMBERS),
    "ln": _function(_to_float, "natural logarithm; null for 0 and below", NUMBERS),
    "exp": _function(_to_float, "e to the power", NUMBERS),
    "isnan": _function(_to_bool, "whether it is NaN", NUMBERS),
    "isfinite": _function(_to_bool, "whether it is neither NaN nor infinite", NUMBERS),
    "greatest": _function(common, "largest; nulls are left out", ANY, repeats=True),
    "least": _function(common, "smallest; nulls are left out", ANY, repeats=True),
    "coalesce": _function(common, "the first that is not null", ANY, repeats=True),
    "nullif": _function(lambda kinds: kinds[0] if _compared(kinds) else None,
                        "null where both are equal, else the first", ANY, ANY),
    "lower": _function(_to_text, "in small letters", _TEXT),
    "upper": _function(_to_text, "in capital letters", _TEXT),
    "length": _function(_to_int, "number of characters", _TEXT),
    "trim": _function(_to_text, "without spaces at both ends", _TEXT),
    "substr": _function(_to_text, "from a character on (the first is 1), so many",
                        _TEXT, _INT, _INT, least=2),
    "concat": _function(_to_text, "one behind the other", _TEXT, repeats=True),
    "starts_with": _function(_to_bool, "whether it begins so", _TEXT, _TEXT),
    "contains": _function(_to_bool, "whether it holds the text", _TEXT, _TEXT),
    "epoch_ms": _function(_to_int, "milliseconds since 1970", _TIME),
    "year": _function(_to_int, "year, UTC", _DAY),
    "month": _function(_to_int, "month, 1 to 12, UTC", _DAY),
    "day": _function(_to_int, "day of the month, UTC", _DAY),
    "hour": _function(_to_int, "hour, 0 to 23, UTC", _TIME),
    "minute": _function(_to_int, "minute, 0 to 59", _TIME),
    "second": _function(_to_int, "second, 0 to 59", _TIME),
    "day_of_week": _function(_to_int, "1 is Monday, UTC", _DAY),
    "hash": _function(_to_int, "a whole number that is the same for equal values", ANY),
}  # fmt: skip
