"""Aggregates as text, such as `mean(amount)` or `quantile(amount, 0.95)`, and their slots.

The state of an aggregate merges in any order: numbers (`Slot`) by sum, minimum or maximum, or the
cells of a sketch. So a window's aggregate is the merge of its panes, a split key's that of its
parts, and none depends on how records were divided into batches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sqlglot import exp

from controlplane.wire.language.functions import ANY
from controlplane.wire.language.grammar import BadExpression
from controlplane.wire.language.parse import Checker
from controlplane.wire.language.registered import accepted_kinds, registered_aggregate
from controlplane.wire.language.tree import NUMBERS, Expression, Kind, Literal

MOST_OF_TOP: Final = 1_000


class Merge(StrEnum):
    """How two values of a slot, or of a sketch's cell, become one.

    `TOTAL` is the sum of an argument, in a type in which no sum overflows.

    The moments of an argument are adjacent slots. Of floats they merge together: `WEIGHT` is the
    number of values, `MEAN` and `REST` their mean (the rest is what a float cannot hold), `SPREAD`
    and `ERROR` the sum of their squared distances from it, likewise. Of whole numbers and decimals
    they are exact sums: `WEIGHT`, the values (`LINEAR`), and their squares (`SQUARES`, of decimals
    without the digits in `SQUARES_HIGH`).
    """

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    TOTAL = "total"
    WEIGHT = "weight"
    MEAN = "mean"
    REST = "rest"
    SPREAD = "spread"
    ERROR = "error"
    LINEAR = "linear"
    SQUARES = "squares"
    SQUARES_HIGH = "squares_high"


# What follows `WEIGHT` in the moments of an argument.
MOMENTS: Final = {
    Merge.MEAN, Merge.REST, Merge.SPREAD, Merge.ERROR,
    Merge.LINEAR, Merge.SQUARES, Merge.SQUARES_HIGH,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Slot:
    """One number per key and pane.

    `of`: its source: `records`, or of the argument `values` (their number) or `value`.
    """

    of: str
    merge: Merge
    kind: Kind


@dataclass(frozen=True, slots=True)
class Kept:
    """The state of an aggregate: slots, or a sketch by its name."""

    slots: tuple[Slot, ...] = ()
    sketch: str = ""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate: a function of an expression, `setting` being its second argument."""

    function: str
    argument: Expression | None
    setting: float | None
    kept: Kept
    kind: Kind


@dataclass(frozen=True)
class Function:
    """An aggregate function: the kinds of its argument and of its result.

    `gives` None: the kind of the argument. `setting`: name and range of the second argument.
    """

    takes: tuple[Kind, ...]
    gives: Kind | None
    about: str
    setting: tuple[str, float, float] | None = None


AGGREGATES: Final[Mapping[str, Function]] = {
    "count": Function(ANY, Kind.INT, "number of records, or of records with a value"),
    "sum": Function(NUMBERS, None, "sum; exact for int and decimal, of any size"),
    "mean": Function(NUMBERS, Kind.FLOAT, "arithmetic mean; of decimals a decimal"),
    "min": Function(ANY, None, "smallest"),
    "max": Function(ANY, None, "largest"),
    "variance": Function(
        NUMBERS, Kind.FLOAT,
        "variance of the sample (n - 1): exact for int and decimal, of floats within 1e-12",
    ),
    "stddev": Function(
        NUMBERS, Kind.FLOAT, "standard deviation of the sample (n - 1): the root of the variance"
    ),
    "count_distinct": Function(
        ANY, Kind.INT, "different values: exact below 1,000, then with a standard error of 1.6 %"
    ),
    "quantile": Function(
        NUMBERS, Kind.FLOAT,
        "value of that rank: exact below 1,000 values, then within 1 %",
        ("share", 0, 1),
    ),
    "median": Function(NUMBERS, Kind.FLOAT, "quantile of one half"),
    "top_k": Function(
        ANY, Kind.TEXT, "most frequent values with their counts",
        ("k", 1, MOST_OF_TOP),
    ),
}  # fmt: skip
_KNOWN: Final = ", ".join(AGGREGATES)


def aggregate_of(checker: Checker, node: exp.Expr) -> Aggregate:
    """Return the aggregate of a text's tree. Raises `BadExpression`."""
    if not isinstance(node, exp.Anonymous):
        raise checker.bad(node, f"must be an aggregate of an expression: {_KNOWN}")
    name, arguments = _called(checker, node)
    function = _function(name, checker, node)
    argument = checker.expression(arguments[0]) if arguments else None
    if argument is None and name != "count":
        raise checker.bad(node, f"{name} takes an expression")
    if argument is not None and argument.kind not in function.takes:
        wanted = " or ".join(function.takes)
        raise checker.bad(arguments[0], f"{name} takes {wanted}, not {argument.kind}")
    setting = _setting(name, function, checker, node, arguments[1:])
    return Aggregate(
        name, argument, setting, _kept(name, argument), _gives(name, argument, function)
    )


def _gives(name: str, argument: Expression | None, function: Function) -> Kind:
    if argument is None:
        return function.gives or Kind.INT
    if name == "mean" and argument.kind is Kind.DECIMAL:
        return Kind.DECIMAL
    return function.gives or argument.kind


def _called(checker: Checker, node: exp.Anonymous) -> tuple[str, list[exp.Expr]]:
    """Return name and arguments; `count(*)` counts records."""
    called, given = checker.arguments(node, "this", "expressions")
    name, arguments = str(called).lower(), given or []
    if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        return name, checker.arguments(arguments[0])
    return name, arguments


def _function(name: str, checker: Checker, node: exp.Expr) -> Function:
    known = AGGREGATES.get(name)
    if known is not None:
        return known
    result = registered_aggregate(name)
    if result is None:
        raise BadExpression(
            checker.text,
            f"there is no aggregate {name}; there are {_KNOWN}",
            node.meta["start"],
            node.meta["end"] + 1,
        )
    return Function(accepted_kinds(result.takes), result.gives, result.about)


def _setting(
    name: str, function: Function, checker: Checker, node: exp.Expr, more: Sequence[exp.Expr]
) -> float | None:
    if name == "median" and not more:
        return 0.5
    if function.setting is None or name == "median":
        if more:
            raise checker.bad(more[0], f"{name} takes nothing more")
        return None
    label, least, most = function.setting
    if len(more) != 1:
        raise checker.bad(node, f"{name} takes an expression and {label}")
    value = more[0]
    constant = checker.expression(value) if isinstance(value, exp.Literal) else None
    number = constant.value if isinstance(constant, Literal) else None
    if (
        not isinstance(number, int | float)
        or not least <= number <= most
        or (least >= 1 and number % 1)
    ):
        raise checker.bad(value, f"{label} must be a constant from {least:g} to {most:g}")
    return float(number)


def _kept(name: str, argument: Expression | None) -> Kept:
    if argument is None:
        return Kept((Slot("records", Merge.SUM, Kind.INT),))
    values = Slot("values", Merge.SUM, Kind.INT)
    total = Slot("value", Merge.TOTAL, argument.kind)
    plain = {
        "count": (values,),
        "sum": (values, total),
        "mean": (values, total),
        "min": (Slot("value", Merge.MIN, argument.kind),),
        "max": (Slot("value", Merge.MAX, argument.kind),),
        "variance": _moments(argument.kind),
        "stddev": _moments(argument.kind),
    }
    if name in plain:
        return Kept(plain[name])
    return Kept(sketch="quantile" if name == "median" else name)


def _moments(kind: Kind) -> tuple[Slot, ...]:
    merges: tuple[Merge, ...] = (Merge.LINEAR, Merge.SQUARES)
    if kind is Kind.FLOAT:
        merges = (Merge.MEAN, Merge.REST, Merge.SPREAD, Merge.ERROR)
    elif kind is Kind.DECIMAL:
        merges = (*merges, Merge.SQUARES_HIGH)
    weight = Slot("values", Merge.WEIGHT, Kind.INT)
    return (weight, *(Slot("value", merge, kind) for merge in merges))
