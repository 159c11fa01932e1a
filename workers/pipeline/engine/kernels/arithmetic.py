"""Operators on numbers, and differences of times and dates.

Whole numbers are computed by Arrow's checked kernels, decimals by `decimals.py`, floats by
IEEE 754.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.kernels import decimals
from workers.pipeline.engine.kernels.types import (
    FLOAT,
    INT,
    Kernel,
    Value,
    as_float,
    group_alike,
    is_decimal,
    is_float,
    nonzero,
    on_arrays,
)


def _operator(of_numbers: Kernel, of_decimals: Kernel) -> Kernel:
    def call(left: Value, right: Value) -> Value:
        item, other = group_alike(left, right)
        return of_decimals(item, other) if is_decimal(item) else of_numbers(item, other)

    return call


def _difference(left: Value, right: Value) -> Value:
    item, other = group_alike(left, right)
    if pa.types.is_date(item.type):
        # Arrow's own difference is in seconds.
        return pc.subtract_checked(
            item.cast(pa.int32()).cast(INT), other.cast(pa.int32()).cast(INT)
        )
    if is_decimal(item):
        return decimals.subtract(item, other)
    result = pc.subtract_checked(item, other)
    return result.cast(INT) if pa.types.is_duration(result.type) else result


def _quotient(left: Value, right: Value) -> Value:
    if any(is_decimal(item) for item in (left, right)) and not any(map(is_float, (left, right))):
        return decimals.divide(*group_alike(left, right))
    return pc.divide(as_float(left), nonzero(as_float(right)))


def _floored(left: Value, right: Value) -> Value:
    if is_float(left):
        return _by_numpy(np.floor_divide)(left, nonzero(right))
    divisor = nonzero(right)
    towards_zero = pc.divide_checked(left, divisor)
    rest = pc.subtract(left, pc.multiply(towards_zero, divisor))
    below = pc.and_(pc.not_equal(rest, 0), pc.not_equal(pc.less(rest, 0), pc.less(divisor, 0)))
    return pc.subtract(towards_zero, below.cast(INT))


def _rest(left: Value, right: Value) -> Value:
    if is_float(left):
        return _by_numpy(np.mod)(left, nonzero(right))
    # The rest of -1 is that of 1, without an overflow at the least number.
    divisor = nonzero(pc.if_else(pc.equal(right, -1), pa.scalar(1, INT), right))
    return pc.subtract(left, pc.multiply(_floored(left, divisor), divisor))


def _by_numpy(function: Callable[..., Any]) -> Kernel:
    """Return a numpy function of floats as a kernel; null for null."""

    @on_arrays
    def call(left: Value, right: Value) -> Value:
        null = np.asarray(left.is_null()) | np.asarray(right.is_null())
        values = [item.fill_null(1.0).to_numpy(zero_copy_only=False) for item in (left, right)]
        with np.errstate(all="ignore"):
            return pa.array(function(*values), FLOAT, mask=null)

    return call


def _if_positive(kernel: Kernel, least: float) -> Kernel:
    """Return a kernel that is null below `least`; NaN stays NaN."""

    def call(value: Value) -> Value:
        numbers = as_float(value)
        bad = pc.less(numbers, least)
        return kernel(pc.if_else(bad, pa.scalar(None, FLOAT), numbers))

    return call


ARITHMETIC: Final[dict[str, Kernel]] = {
    "+": _operator(pc.add_checked, decimals.add),
    "-": _difference,
    "*": _operator(pc.multiply_checked, decimals.multiply),
    "/": _quotient,
    "//": _operator(_floored, decimals.floor_divide),
    "%": _operator(_rest, decimals.remainder),
    "negative": lambda value: value if pa.types.is_null(value.type) else pc.negate_checked(value),
    "abs": pc.abs_checked,
    "sqrt": _if_positive(pc.sqrt, 0.0),
    "power": lambda base, exponent: pc.power(as_float(base), as_float(exponent)),
    "ln": _if_positive(pc.ln, float(np.nextafter(0.0, 1.0))),
    "exp": lambda value: pc.exp(as_float(value)),
    "isnan": lambda value: pc.is_nan(as_float(value)),
    "isfinite": lambda value: pc.is_finite(as_float(value)),
}
