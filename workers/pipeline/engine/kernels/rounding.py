"""Rounding, of floats and decimals."""

from typing import Final

from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.kernels.types import (
    DECIMAL,
    FLOAT,
    INT,
    Kernel,
    Value,
    as_float,
    is_decimal,
    is_float,
    on_arrays,
)

_MOST_DIGITS: Final = 9


def to_whole(kernel: Kernel) -> Kernel:
    """Return a kernel that gives a rounded number as int64; null for NaN.

    What is beyond 64 bits raises `ArrowInvalid`, infinities among it.
    """

    @on_arrays
    def call(value: Value) -> Value:
        if is_decimal(value):
            return kernel(value.cast(pa.decimal256(50, _MOST_DIGITS))).cast(INT)
        if not is_float(value):
            return value.cast(INT)
        rounded = kernel(pc.if_else(pc.is_nan(value), pa.scalar(None, FLOAT), value))
        too_large = pc.greater_equal(pc.abs(rounded), float(2**63))
        least = pc.equal(rounded, -float(2**63))
        if pc.any(pc.and_not(too_large, least)).as_py():
            raise pa.ArrowInvalid("overflow")
        return rounded.cast(INT, safe=False)

    return call


def _rounded(value: Value, digits: Value | None = None) -> Value:
    if is_decimal(value):
        return _rounded_decimal(value, digits)
    numbers = as_float(value)
    if digits is None:
        return pc.round(numbers)
    if isinstance(digits, pa.Scalar) and digits.is_valid:
        return pc.round(numbers, ndigits=digits.as_py())
    return pc.round_binary(numbers, digits.cast(pa.int32()))


def _rounded_decimal(value: Value, digits: Value | None) -> Value:
    wide = value.cast(pa.decimal256(50, _MOST_DIGITS))
    if digits is None:
        return pc.round(wide, round_mode="half_to_even").cast(DECIMAL)
    if isinstance(digits, pa.Scalar) and digits.is_valid:
        places = min(digits.as_py(), _MOST_DIGITS)
        return pc.round(wide, ndigits=places, round_mode="half_to_even").cast(DECIMAL)
    return _each_rounded(wide, digits)


@on_arrays
def _each_rounded(wide: Value, digits: Value) -> Value:
    places = pc.min_element_wise(digits, pa.scalar(_MOST_DIGITS, INT), skip_nulls=False)
    result = pa.nulls(len(wide), DECIMAL)
    for item in pc.unique(places.drop_null()).to_pylist():
        selected = pc.fill_null(pc.equal(places, item), fill_value=False)
        rounded = pc.round(wide, ndigits=item, round_mode="half_to_even").cast(DECIMAL)
        result = pc.if_else(selected, rounded, result)
    return result


ROUNDING: Final[dict[str, Kernel]] = {
    "ceil": to_whole(pc.ceil),
    "floor": to_whole(pc.floor),
    "round": _rounded,
}
