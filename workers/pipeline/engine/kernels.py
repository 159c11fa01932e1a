"""What each function and operator computes on Arrow columns: a kernel of Arrow, or a few.

Null in, null out, except where `functions.py` of the language says otherwise. What has no answer (a
division by 0, the root of a negative number) is null too: one bad record must not stop a cluster.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.hashing import hashes_of

# An array of one value per record, or a scalar that stands for all of them.
Value = Any


def _nonzero(value: Value) -> Value:
    return pc.if_else(pc.equal(value, 0), pa.scalar(None, value.type), value)


def _quotient(left: Value, right: Value) -> Value:
    return pc.divide(left.cast(pa.float64()), _nonzero(right.cast(pa.float64())))


def _floored(left: Value, right: Value) -> Value:
    if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
        return pc.floor(_quotient(left, right))
    divisor = _nonzero(right)
    towards_zero = pc.divide(left, divisor)
    rest = pc.subtract(left, pc.multiply(towards_zero, divisor))
    below = pc.and_(pc.not_equal(rest, 0), pc.not_equal(pc.less(rest, 0), pc.less(divisor, 0)))
    return pc.subtract(towards_zero, below.cast(pa.int64()))


def _rest(left: Value, right: Value) -> Value:
    return pc.subtract(left, pc.multiply(_floored(left, right), right))


def _difference(left: Value, right: Value) -> Value:
    found = pc.subtract(left, right)
    return found.cast(pa.int64()) if pa.types.is_duration(found.type) else found


def _comparison(kernel: Callable[..., Value]) -> Callable[..., Value]:
    def compare(left: Value, right: Value) -> Value:
        if pa.types.is_null(left.type) or pa.types.is_null(right.type):
            return _nothing_like(left, right)
        return kernel(left, right)

    return compare


def _nothing_like(left: Value, right: Value) -> Value:
    longest = left if isinstance(right, pa.Scalar) else right
    if isinstance(longest, pa.Scalar):
        return pa.scalar(None, pa.bool_())
    return pa.nulls(len(longest), pa.bool_())


def _among(value: Value, *options: Value) -> Value:
    """Whether a value is one of the constants: null for null, as a comparison would be."""
    known = [option.as_py() for option in options if option.is_valid]
    found = pc.is_in(value, value_set=pa.array(known, value.type))
    unknown = pa.scalar(None, pa.bool_())
    if len(known) < len(options):
        found = pc.if_else(found, found, unknown)
    return pc.if_else(pc.is_valid(value), found, unknown)


def _case(*given: Value) -> Value:
    found = given[-1]
    for at in range(len(given) - 3, -1, -2):
        condition = pc.fill_null(given[at].cast(pa.bool_()), fill_value=False)
        found = pc.if_else(condition, *_alike(given[at + 1], found))
    return found


def _alike(left: Value, right: Value) -> tuple[Value, Value]:
    """Cast both to the type that holds both: a null takes the other's, whole numbers widen."""
    if pa.types.is_null(left.type) or pa.types.is_floating(right.type):
        return left.cast(right.type), right
    return left, right.cast(left.type)


def _widened(kernel: Callable[..., Value]) -> Callable[..., Value]:
    """Let a kernel see all its arguments in one type."""

    def call(first: Value, *others: Value) -> Value:
        found = first
        for other in others:
            found = kernel(*_alike(found, other))
        return found

    return call


def _if_positive(kernel: Callable[..., Value], least: float) -> Callable[..., Value]:
    def call(value: Value) -> Value:
        numbers = value.cast(pa.float64())
        good = pc.greater_equal(numbers, least)
        return kernel(pc.if_else(good, numbers, pa.scalar(None, pa.float64())))

    return call


def _power(base: Value, exponent: Value) -> Value:
    return pc.power(base.cast(pa.float64()), exponent.cast(pa.float64()))


def _whole(kernel: Callable[..., Value]) -> Callable[..., Value]:
    """Give a rounded number as int64; beyond its range, and for what is no number, null."""

    def call(value: Value) -> Value:
        if not pa.types.is_floating(value.type):
            return value
        rounded = kernel(value)
        fits = pc.less(pc.abs(rounded), float(2**63))
        kept = pc.if_else(fits, rounded, pa.scalar(None, pa.float64()))
        return kept.cast(pa.int64(), safe=False)

    return call


def _rounded(value: Value, digits: Value | None = None) -> Value:
    numbers = value.cast(pa.float64())
    if digits is None:
        return pc.round(numbers)
    if isinstance(digits, pa.Scalar) and digits.is_valid:
        return pc.round(numbers, ndigits=digits.as_py())
    return pc.round_binary(numbers, digits.cast(pa.int32()))


def _like(value: Value, pattern: Value) -> Value:
    if not isinstance(pattern, pa.Scalar):
        pairs = zip(value.to_pylist(), pattern.to_pylist(), strict=True)
        return pa.array([_one_like(*pair) for pair in pairs], pa.bool_())
    if not pattern.is_valid:
        return pa.nulls(len(value), pa.bool_())
    return pc.match_like(value, pattern.as_py())


def _one_like(value: str | None, pattern: str | None) -> bool | None:
    if value is None or pattern is None:
        return None
    return bool(pc.match_like(pa.array([value]), pattern)[0].as_py())


def _text_test(kernel: Callable[..., Value]) -> Callable[..., Value]:
    """Apply a kernel that knows constant patterns only, pattern by pattern where they differ."""

    def call(value: Value, pattern: Value) -> Value:
        if isinstance(pattern, pa.Scalar):
            return (
                kernel(value, pattern.as_py())
                if pattern.is_valid
                else _nothing_like(value, pattern)
            )
        found = [
            None if one is None or mark is None else kernel(pa.scalar(one), mark).as_py()
            for one, mark in zip(_listed(value, len(pattern)), pattern.to_pylist(), strict=True)
        ]
        return pa.array(found, pa.bool_())

    return call


def _listed(value: Value, records: int) -> list[Any]:
    return [value.as_py()] * records if isinstance(value, pa.Scalar) else value.to_pylist()


def _substring(value: Value, first: Value, length: Value | None = None) -> Value:
    given = (value, first) if length is None else (value, first, length)
    if all(isinstance(one, pa.Scalar) and one.is_valid for one in given[1:]):
        begin = max(0, first.as_py() - 1)
        stop = None if length is None else max(begin, begin + length.as_py())
        return pc.utf8_slice_codeunits(value, begin, stop)
    records = next((len(one) for one in given if not isinstance(one, pa.Scalar)), 1)
    rows = zip(*(_listed(one, records) for one in given), strict=True)
    found = pa.array([None if None in row else _part(*row) for row in rows], pa.string())
    return found[0] if all(isinstance(one, pa.Scalar) for one in given) else found


def _part(text: str, first: int, size: int | None = None) -> str:
    begin = max(0, first - 1)
    return text[begin:] if size is None else text[begin : max(begin, begin + size)]


def _null_where_equal(left: Value, right: Value) -> Value:
    same = pc.fill_null(KERNELS["="](left, right), fill_value=False)
    return pc.if_else(same, pa.scalar(None, left.type), left)


def _hashed(value: Value) -> Value:
    """Return a 64-bit hash that is the same in every process and version."""
    records = 1 if isinstance(value, pa.Scalar) else len(value)
    array = pa.repeat(value, 1) if isinstance(value, pa.Scalar) else value
    found = pa.array(hashes_of([array], records).view(np.int64), mask=np.asarray(array.is_null()))
    return found[0] if isinstance(value, pa.Scalar) else found


KERNELS: Final[dict[str, Callable[..., Value]]] = {
    "+": pc.add,
    "-": _difference,
    "*": pc.multiply,
    "/": _quotient,
    "//": _floored,
    "%": _rest,
    "negative": pc.negate,
    "=": _comparison(pc.equal),
    "<>": _comparison(pc.not_equal),
    "<": _comparison(pc.less),
    "<=": _comparison(pc.less_equal),
    ">": _comparison(pc.greater),
    ">=": _comparison(pc.greater_equal),
    "and": lambda left, right: pc.and_kleene(left.cast(pa.bool_()), right.cast(pa.bool_())),
    "or": lambda left, right: pc.or_kleene(left.cast(pa.bool_()), right.cast(pa.bool_())),
    "not": lambda value: pc.invert(value.cast(pa.bool_())),
    "is null": pc.is_null,
    "in": _among,
    "like": _like,
    "case": _case,
    "to int": _whole(pc.trunc),
    "to float": lambda value: value.cast(pa.float64()),
    "to text": lambda value: value.cast(pa.string()),
    "abs": pc.abs,
    "ceil": _whole(pc.ceil),
    "floor": _whole(pc.floor),
    "round": _rounded,
    "sqrt": _if_positive(pc.sqrt, 0.0),
    "power": _power,
    "ln": _if_positive(pc.ln, float(np.nextafter(0.0, 1.0))),
    "exp": lambda value: pc.exp(value.cast(pa.float64())),
    "greatest": _widened(pc.max_element_wise),
    "least": _widened(pc.min_element_wise),
    "coalesce": _widened(pc.coalesce),
    "nullif": _null_where_equal,
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    "length": pc.utf8_length,
    "trim": pc.utf8_trim_whitespace,
    "substr": _substring,
    "concat": lambda *texts: pc.binary_join_element_wise(*texts, ""),
    "starts_with": _text_test(pc.starts_with),
    "contains": _text_test(pc.match_substring),
    "epoch_ms": lambda value: value.cast(pa.int64()),
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "day_of_week": lambda value: pc.add(pc.day_of_week(value), 1),
    "hash": _hashed,
}
