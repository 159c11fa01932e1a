"""Arithmetic of decimals: 38 digits, 9 of them after the point, rounded half to even.

A decimal is a whole number of units of 1e-9. Where the units of all records fit into 64 bits, numpy
computes; else Arrow's 256-bit decimals or, for quotients, Python.
"""

from collections.abc import Callable
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.kernels.types import (
    DECIMAL,
    SCALE,
    Units,
    Value,
    of_units,
    on_arrays,
    units_of,
)

_UNIT: Final = Decimal(1).scaleb(-SCALE)
_WIDE: Final = pa.decimal256(38, SCALE)
_NARROWER: Final = pa.decimal256(37, SCALE)
# Exact for every operation on two decimals of 38 digits.
_EXACT: Final = Context(prec=120)
_FLOORED: Final = Context(prec=120, rounding=ROUND_FLOOR)
# Units up to here can be multiplied by 10 within 64 bits.
_SMALL: Final = 9 * 10**17


def _nulls(left: Value, right: Value) -> NDArray[np.bool_] | None:
    if not left.null_count and not right.null_count:
        return None
    return np.asarray(pc.or_(left.is_null(), right.is_null()))


def _summed(kernel: Any, plain: Callable[[Units, Units], Units]) -> Callable[..., Value]:
    def call(left: Value, right: Value) -> Value:
        units = units_of(left), units_of(right)
        if units[0] is not None and units[1] is not None:
            return of_units(plain(units[0], units[1]), _nulls(left, right))
        return kernel(left.cast(_WIDE), right.cast(_WIDE)).cast(DECIMAL)

    return on_arrays(call)


add = _summed(pc.add, lambda left, right: left + right)
subtract = _summed(pc.subtract, lambda left, right: left - right)


@on_arrays
def multiply(left: Value, right: Value) -> Value:
    """Return the product, rounded half to even. Raises `ArrowInvalid` beyond 38 digits."""
    swapped = pc.less(pc.abs(left), pc.abs(right))
    larger, smaller = pc.if_else(swapped, right, left), pc.if_else(swapped, left, right)
    if pc.any(pc.greater_equal(pc.abs(smaller), pa.scalar(Decimal(10**28), DECIMAL))).as_py():
        raise pa.ArrowInvalid("overflow")
    product = pc.multiply(larger.cast(_WIDE), smaller.cast(_NARROWER))
    return pc.round(product, ndigits=SCALE, round_mode="half_to_even").cast(DECIMAL)


@on_arrays
def divide(left: Value, right: Value) -> Value:
    """Return the quotient, rounded half to even; null for a divisor of 0."""
    up, down = units_of(left, _SMALL), units_of(right, _SMALL)
    null = _without_divisor(left, right)
    if up is None or down is None:
        return _by_python(_quotient, left, right)
    divisor = np.where(down == 0, 1, down)
    negative = (up < 0) ^ (divisor < 0)
    whole, rest = np.divmod(np.abs(up), np.abs(divisor))
    fraction = np.zeros(len(up), np.int64)
    for _ in range(SCALE):
        digit, rest = np.divmod(rest * 10, np.abs(divisor))
        fraction = fraction * 10 + digit
    if (whole > _SMALL // 10**SCALE).any():
        return _by_python(_quotient, left, right)
    units = whole * 10**SCALE + fraction
    twice = 2 * rest - np.abs(divisor)
    units += (twice > 0) | ((twice == 0) & (units % 2 == 1))
    return of_units(np.where(negative, -units, units), null)


@on_arrays
def floor_divide(left: Value, right: Value) -> Value:
    """Return the quotient rounded down; null for a divisor of 0."""
    up, down = units_of(left, _SMALL), units_of(right, _SMALL)
    if up is None or down is None:
        return _by_python(_floored, left, right)
    quotient = up // np.where(down == 0, 1, down)
    if (np.abs(quotient) > _SMALL // 10**SCALE).any():
        return _by_python(_floored, left, right)
    return of_units(quotient * 10**SCALE, _without_divisor(left, right))


@on_arrays
def remainder(left: Value, right: Value) -> Value:
    """Return the remainder of a floored quotient, with the divisor's sign; null for 0."""
    up, down = units_of(left, _SMALL), units_of(right, _SMALL)
    if up is None or down is None:
        return _by_python(_rest, left, right)
    return of_units(up % np.where(down == 0, 1, down), _without_divisor(left, right))


def _without_divisor(left: Value, right: Value) -> NDArray[np.bool_]:
    zero = pc.fill_null(pc.equal(right, pa.scalar(Decimal(0), DECIMAL)), fill_value=True)
    return np.asarray(pc.or_(zero, left.is_null()))


def _by_python(compute: Callable[[Decimal, Decimal], Decimal], left: Value, right: Value) -> Value:
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    result = [None if a is None or not b else compute(a, b) for a, b in pairs]
    return pa.array(result, DECIMAL)


def _quotient(left: Decimal, right: Decimal) -> Decimal:
    return _EXACT.divide(left, right).quantize(_UNIT, ROUND_HALF_EVEN, _EXACT)


def _floored(left: Decimal, right: Decimal) -> Decimal:
    return _FLOORED.divide(left, right).to_integral_value(ROUND_FLOOR)


def _rest(left: Decimal, right: Decimal) -> Decimal:
    return _EXACT.subtract(left, _EXACT.multiply(_floored(left, right), right))
