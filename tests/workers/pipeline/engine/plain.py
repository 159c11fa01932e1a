"""The language interpreted record by record in plain Python: slow, and sharing no code."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import numpy as np

from controlplane.wire.language.tree import Call, Column, Expression, Literal

Record = Mapping[str, Any]


def value_of(expression: Expression, record: Record) -> Any:
    """Return what an expression is for one record; times are milliseconds."""
    match expression:
        case Literal():
            return expression.value
        case Column():
            return record[expression.name]
        case Call():
            arguments = [value_of(one, record) for one in expression.arguments]
            if expression.function in WITH_NULLS:
                return WITH_NULLS[expression.function](*arguments)
            if None in arguments:
                return None
            return PLAIN[expression.function](*arguments)


def either(*arguments: Any) -> Any:
    return True if True in arguments else None if None in arguments else False


def both(*arguments: Any) -> Any:
    return False if False in arguments else None if None in arguments else True


def case(*given: Any) -> Any:
    for condition, value in zip(given[:-1:2], given[1::2], strict=True):
        if condition:
            return value
    return given[-1]


def among(value: Any, *options: Any) -> Any:
    if value is None:
        return None
    return True if value in options else None if None in options else False


def present(choose: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    def call(*given: Any) -> Any:
        there = [one for one in given if one is not None]
        return choose(there) if there else None

    return call


def like(text: str, pattern: str) -> bool:
    regular = re.escape(pattern).replace("%", ".*").replace("_", ".")
    return re.fullmatch(regular, text, re.DOTALL) is not None


def whole(rounded: Callable[[float], int], number: float) -> int | None:
    found = rounded(number)
    return found if abs(found) < 2**63 else None


def power(base: float, exponent: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float64(base) ** exponent)


def moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


WITH_NULLS: dict[str, Callable[..., Any]] = {
    "and": both,
    "or": either,
    "is null": lambda value: value is None,
    "case": case,
    "in": among,
    "coalesce": present(lambda there: there[0]),
    "greatest": present(max),
    "least": present(min),
    "nullif": lambda left, right: None if left == right else left,
}

PLAIN: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else None,
    "//": lambda a, b: a // b if b else None,
    "%": lambda a, b: a % b if b else None,
    "negative": lambda a: -a,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "not": lambda a: not a,
    "like": like,
    "to int": lambda a: whole(math.trunc, a),
    "to float": float,
    "to decimal": lambda a: Decimal(a).quantize(Decimal("1e-9"), ROUND_HALF_EVEN),
    "to text": str,
    "to time": lambda days: days * 86_400_000,
    "to date": lambda ms: ms // 86_400_000,
    "isnan": math.isnan,
    "isfinite": math.isfinite,
    "abs": abs,
    "ceil": lambda a: whole(math.ceil, a),
    "floor": lambda a: whole(math.floor, a),
    "round": lambda a, digits=0: round(float(a), digits),
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else None,
    "power": power,
    "ln": lambda a: math.log(a) if a > 0 else None,
    "exp": math.exp,
    "lower": str.lower,
    "upper": str.upper,
    "length": len,
    "trim": str.strip,
    "substr": lambda text, first, size=None: text[max(0, first - 1) :][
        : None if size is None else max(0, size)
    ],
    "concat": lambda *texts: "".join(texts),
    "starts_with": str.startswith,
    "contains": lambda text, part: part in text,
    "epoch_ms": int,
    "year": lambda ms: moment(ms).year,
    "month": lambda ms: moment(ms).month,
    "day": lambda ms: moment(ms).day,
    "hour": lambda ms: moment(ms).hour,
    "minute": lambda ms: moment(ms).minute,
    "second": lambda ms: moment(ms).second,
    "day_of_week": lambda ms: moment(ms).isoweekday(),
}
