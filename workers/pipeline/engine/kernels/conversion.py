"""Casts, rounding of floats and decimals, and the hash of a value."""

import math
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.hashing import hash_rows
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
    plain_zeros,
)

_MOST_DIGITS: Final = 9
# All decimals are 0 if they are rounded to so many digits; floats to fewer than -_FINEST.
_COARSEST: Final = -30
_FINEST: Final = 400
# Arrow has larger powers of 10 in single precision only.
_EXACT_POWER: Final = 14
_TIME: Final = pa.timestamp("ms", tz="UTC")
_DAY_MS: Final = 86_400_000


def to_whole(kernel: Kernel) -> Kernel:
    """Return a kernel that rounds to int64, NaN to null. It raises `ArrowInvalid` beyond."""

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
    kernel = _decimals_to if is_decimal(value) else _floats_to
    places = pa.scalar(0, INT) if digits is None else digits
    if isinstance(places, pa.Scalar) and places.is_valid:
        return on_arrays(lambda values: kernel(values, places.as_py()))(value)
    return on_arrays(partial(_each_rounded, kernel))(value, places)


def _each_rounded(kernel: Callable[[Value, int], Value], values: Value, digits: Value) -> Value:
    """Round by a kernel for a constant number of digits."""
    fewest = pc.max_element_wise(digits, -_FINEST, skip_nulls=False)
    places = pc.min_element_wise(fewest, _FINEST, skip_nulls=False)
    result = pa.nulls(len(values), DECIMAL if is_decimal(values) else FLOAT)
    for item in pc.unique(places.drop_null()).to_pylist():
        selected = pc.fill_null(pc.equal(places, item), fill_value=False)
        result = pc.if_else(selected, kernel(pc.if_else(selected, values, None), item), result)
    return result


def _floats_to(values: Value, digits: int) -> Value:
    numbers = as_float(values)
    if abs(digits) > _EXACT_POWER:
        places = max(-_FINEST, min(digits, _FINEST))
        return pa.array([_round_exactly(item, places) for item in numbers.to_pylist()], FLOAT)
    # Arrow multiplies by the power: no number becomes infinite, and none too small for it stays.
    if digits < 0:
        return pc.round(pc.if_else(pc.less(pc.abs(numbers), 1.0), 0.0, numbers), ndigits=digits)
    whole = pc.greater_equal(pc.abs(numbers), 2.0**52)
    return pc.if_else(whole, numbers, pc.round(pc.if_else(whole, 0.0, numbers), ndigits=digits))


def _round_exactly(number: float | None, digits: int) -> float | None:
    if number is None or not math.isfinite(number):
        return number
    try:
        return round(number, digits)
    except OverflowError:
        return math.copysign(math.inf, number)


def _decimals_to(values: Value, digits: int) -> Value:
    wide = values.cast(pa.decimal256(50, _MOST_DIGITS))
    places = max(_COARSEST, min(digits, _MOST_DIGITS))
    return pc.round(wide, ndigits=places, round_mode="half_to_even").cast(DECIMAL)


def _to_decimal(value: Value) -> Value:
    if is_float(value):
        value = pc.if_else(pc.is_nan(value), pa.scalar(None, FLOAT), value)
    elif pa.types.is_boolean(value.type):
        value = value.cast(INT)
    return value.cast(DECIMAL)


def _to_text(value: Value) -> Value:
    if is_decimal(value):
        return _decimal_text(value)
    result = plain_zeros(value).cast(pa.string())
    if not is_float(value):
        return result
    for shown, wanted in (("nan", "NaN"), ("-nan", "NaN"), ("inf", "Infinity"),
                          ("-inf", "-Infinity")):  # fmt: skip
        result = pc.if_else(pc.equal(result, shown), wanted, result)
    return result


@on_arrays
def _decimal_text(value: Value) -> Value:
    """Return decimals without zeros at their end: 1.5, 100, 0.000000003."""
    result = value.cast(pa.string())
    exponent = pc.match_substring(result, "E")
    if pc.any(exponent).as_py():
        plain = [None if item is None else f"{item:f}" for item in value.to_pylist()]
        result = pa.array(plain, pa.string())
    return pc.utf8_rtrim(pc.utf8_rtrim(result, "0"), ".")


def _to_date(value: Value) -> Value:
    return _days(value) if pa.types.is_timestamp(value.type) else value.cast(pa.date32())


@on_arrays
def _days(value: Value) -> Value:
    ms = value.cast(INT)
    days = np.asarray(ms.fill_null(0)) // _DAY_MS
    if len(days) and np.abs(days).max() >= 2**31:
        raise pa.ArrowInvalid("overflow")
    return pa.array(days.astype(np.int32), pa.date32(), mask=np.asarray(ms.is_null()))


@on_arrays
def _hashed(value: Value) -> Value:
    """Return a 64-bit hash that is the same in every process and version."""
    hashes = hash_rows([value], len(value)).view(np.int64)
    return pa.array(hashes, mask=np.asarray(value.is_null()))


CONVERSIONS: Final[dict[str, Kernel]] = {
    "ceil": to_whole(pc.ceil),
    "floor": to_whole(pc.floor),
    "round": _rounded,
    "to int": to_whole(pc.trunc),
    "to float": as_float,
    "to decimal": _to_decimal,
    "to text": _to_text,
    "to time": lambda value: value.cast(_TIME),
    "to date": _to_date,
    "hash": _hashed,
}
