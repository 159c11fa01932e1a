"""Exact casts of Arrow arrays to integers, decimals and floats.

A cast returns an array of the target type that is null where the target has no equal value, or
raises `pa.ArrowException`, if the cast of Arrow does. Ordinary values are cast by Arrow; others,
one by one, as Python's integers, which have no limits. Arrow's parser of decimals receives only
plain digits that the target has: it wraps longer numbers, rounds at exponents below -76, and
ends the process at exponents such as -999999999 (seen with version 26).
"""

import re
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module
from typing import Any, Final

import numpy as np
import pyarrow as pa

# The stubs of Arrow do not know what its kernels take.
pc: Any = import_module("pyarrow.compute")
# No column holds a number of more digits.
_MOST_DIGITS: Final = 38
_LARGEST_EXPONENT: Final = 18
# Numbers of so many digits are different floats of 64 bits.
_FLOAT_DIGITS: Final = 15
_NUMBER: Final = re.compile(
    r"([+-]?)(?=\.?[0-9])([0-9]*+)(?:\.([0-9]*+))?(?:[eE]([+-]?)([0-9]++))?"
)
INT64_TEXT: Final = "^-?(?:[0-9]{1,18}|[1-8][0-9]{18})$"
_NOT_FINITE: Final = "^[+-]?(?i:nan|inf|infinity)$"
_NOT_FINITE_JSON: Final = "^(NaN|-?Infinity)$"


class NumberText(str):
    """A number as the text that names it, with all its digits."""

    __slots__ = ()


def is_text(arrow: Any) -> bool:
    """Return True for the string types of Arrow, whatever their layout."""
    return bool(
        pa.types.is_string(arrow)
        or pa.types.is_large_string(arrow)
        or pa.types.is_string_view(arrow)
    )


def is_number(arrow: Any) -> bool:
    """Return True for the number types of Arrow."""
    return bool(
        pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_decimal(arrow)
    )


def keep_where(mask: Any, array: Any) -> Any:
    """Return an array with null where the mask is false."""
    if pc.all(mask, min_count=0).as_py():
        return array
    return pc.if_else(mask, array, pa.scalar(None, array.type))


def to_integer(array: Any, target: Any) -> Any:
    """Return numbers, or text of numbers, as integers."""
    source = array.type
    low, high = integer_range(target)
    if pa.types.is_decimal(source):
        # Arrow compares narrower decimals with the range before it removes their scale.
        narrow = source.bit_width < 128  # noqa: PLR2004 - the bits of decimal128
        wide = pa.decimal128(_MOST_DIGITS, source.scale)
        return (array.cast(wide) if narrow else array).cast(target)
    if pa.types.is_floating(source):
        wide = array.cast(pa.float64())
        whole = pc.equal(pc.floor(wide), wide)
        within = pc.and_(pc.greater_equal(wide, float(low)), pc.less(wide, float(high + 1)))
        return keep_where(pc.and_(whole, within), wide).cast(target, safe=False)
    if is_text(source):
        plain = keep_where(pc.match_substring_regex(array, INT64_TEXT), array)

        def exact(text: str) -> int | None:
            number = scaled(text, 0)
            return number if number is not None and low <= number <= high else None

        return _completed(to_integer(plain.cast(pa.int64()), target), array, exact)
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        return _between(array, low, high).cast(target)


def to_decimal(array: Any, target: Any) -> Any:
    """Return numbers, or text of numbers, as decimals.

    A float whose value the decimal does not have counts as its shortest text: 0.1 is 0.1.
    """
    source, scale = array.type, target.scale
    limit, digits = 10**target.precision, target.precision - target.scale
    if pa.types.is_decimal(source):
        return array.cast(target)
    if pa.types.is_integer(source):
        most = 10**digits - 1
        return _between(array, -most, most).cast(pa.decimal128(_MOST_DIGITS, scale)).cast(target)

    def exact(value: Any) -> Decimal | None:
        number = scaled(value, scale) if isinstance(value, str) else _scaled_float(value, scale)
        return Decimal(f"{number}E-{scale}") if number is not None and abs(number) < limit else None

    if pa.types.is_floating(source):
        return _completed(_decimals_of_floats(array, target), array, exact)
    form = f"[0-9]{{1,{digits}}}" if digits else "0"
    form = f"^[+-]?{form}(?:\\.[0-9]{{0,{scale}}})?$"
    plain = keep_where(pc.match_substring_regex(array, form), array)
    return _completed(plain.cast(target), array, exact)


def _decimals_of_floats(array: Any, target: Any) -> Any:
    """Return the floats of 64 bits that are quotients of few digits, null for others."""
    values = np.asarray(array.cast(pa.float64()).fill_null(np.nan))
    digits = _FLOAT_DIGITS if array.type.bit_width == 64 else 0  # noqa: PLR2004 - float64
    with np.errstate(invalid="ignore", over="ignore"):
        units = np.rint(values * 10.0**target.scale)
        known = (np.abs(units) < 10.0 ** min(digits, target.precision)) & (
            units / 10.0**target.scale == values
        )
    low = np.where(known, units, 0).astype(np.int64)
    words = pa.py_buffer(np.stack([low, low >> 63], axis=1).tobytes())
    validity = pa.array(known).buffers()[1]
    return pa.Array.from_buffers(target, len(array), [validity, words])


def to_float(array: Any, target: Any, *, textual: bool) -> Any:
    """Return numbers as the nearest floats, and text that names no finite number or NaN.

    `textual`: text may be any number. A number beyond the target's range has no float.
    """
    source = array.type
    if pa.types.is_floating(source):
        result = array.cast(target, safe=False)
        return keep_where(pc.or_(pc.is_finite(result), pc.invert(pc.is_finite(array))), result)
    if pa.types.is_decimal(source):
        # Arrow's cast of decimals is not the nearest float; its parser of text is.
        return array.cast(pa.string()).cast(target)
    if pa.types.is_integer(source):
        return array.cast(target, safe=False)
    named = pc.match_substring_regex(array, _NOT_FINITE if textual else _NOT_FINITE_JSON)
    result = (array if textual else keep_where(named, array)).cast(target)
    return keep_where(pc.or_(pc.is_finite(result), named), result)


def integer_range(target: Any) -> tuple[int, int]:
    """Return the least and the largest integer of an integer type."""
    bits = target.bit_width
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if _is_signed(target) else (0, 2**bits - 1)


def scaled(text: str, scale: int) -> int | None:
    """Return the number that a text names times 10**scale.

    None for text that is not a number in decimal digits, and for a product that is not whole or has
    more than 38 digits. Takes time in proportion to the text, whatever its exponent.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    sign, whole, fraction, direction, exponent = match.groups(default="")
    digits = (whole + fraction).lstrip("0")
    significant = digits.rstrip("0")
    power = exponent.lstrip("0")
    if not significant:
        return 0
    if len(power) > _LARGEST_EXPONENT:
        return None
    shift = int(f"{direction}{power or 0}") - len(fraction) + scale
    shift += len(digits) - len(significant)
    if shift < 0 or len(significant) + shift > _MOST_DIGITS:
        return None
    return int(sign + significant) * int(10**shift)


def _scaled_float(value: Any, scale: int) -> int | None:
    """Return the value of a numpy float times 10**scale if it is whole, else that of its text."""
    if not np.isfinite(value):
        return None
    numerator, denominator = value.item().as_integer_ratio()
    number, rest = divmod(numerator * 10**scale, denominator)
    return scaled(str(value), scale) if rest else int(number)


def _completed(result: Any, array: Any, exact: Callable[[Any], Any]) -> Any:
    """Return the result with the values that `exact` has for the others of the array."""
    if result.null_count == array.null_count:
        return result
    missing = pc.and_(result.is_null(), array.is_valid())
    others = array.filter(missing)
    values = np.asarray(others) if pa.types.is_floating(array.type) else others.to_pylist()
    return pc.replace_with_mask(
        result, missing, pa.array([exact(value) for value in values], result.type)
    )


def _between(array: Any, low: int, high: int) -> Any:
    """Return integers with null for those outside of a range."""
    least, most = integer_range(array.type)
    if low <= least and most <= high:
        return array
    within = pc.and_(
        pc.greater_equal(array, pa.scalar(max(low, least), array.type)),
        pc.less_equal(array, pa.scalar(min(high, most), array.type)),
    )
    return keep_where(within, array)


def _is_signed(arrow: Any) -> bool:
    return bool(pa.types.is_signed_integer(arrow))
