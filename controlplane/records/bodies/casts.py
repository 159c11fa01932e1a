"""Strict casts of Arrow arrays to the type of a column: a value is converted or rejected.

Every cast raises `pa.ArrowInvalid` (or another `pa.ArrowException`) if one of the values cannot be
represented; `conversion.convert` then finds which. It handles nested types, too.
"""

import binascii
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import pyarrow as pa

# The stubs of Arrow do not know what its kernels take.
pc: Any = import_module("pyarrow.compute")
Cast = Callable[[Any], Any]
# The first and last millisecond of the years 1 to 9999, beyond which Python has no dates.
FIRST_MS: Final = -62_135_596_800_000
LAST_MS: Final = 253_402_300_799_999
_FIRST_DAY: Final = FIRST_MS // 86_400_000
_LAST_DAY: Final = LAST_MS // 86_400_000
_PER_SECOND: Final = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_MS: Final = pa.timestamp("ms", tz="UTC")
_WHOLE: Final = "^-?[0-9]+$"
_DATE: Final = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_NOT_FINITE: Final = "^[+-]?(?i:nan|inf|infinity)$"
_NOT_FINITE_JSON: Final = "^(NaN|-?Infinity)$"


def cast_to(source: Any, target: Any, *, textual: bool = False, zone: str = "") -> Cast | None:
    """Return how arrays of a source type become the target type, None if they cannot.

    `textual`: numbers and booleans may be text, as in CSV. `zone`: the IANA time zone of times
    that name none; empty: text without a zone is refused, Arrow timestamps without one are UTC.
    """
    if source.equals(target):
        return None if pa.types.is_nested(target) else _checked(target)
    if pa.types.is_null(source):
        return lambda array: array.cast(target)
    for is_target, find in _TARGETS:
        if is_target(target):
            cast: Cast | None = find(source, target, textual, zone)
            return cast
    return None


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


def _checked(target: Any) -> Cast:
    """Return the cast of an array that has the target type already."""
    if pa.types.is_timestamp(target):
        return _within_years
    return _within_days if pa.types.is_date(target) else lambda array: array


def _to_bool(source: Any, _target: Any, textual: bool, _zone: str) -> Cast | None:
    if not (textual and is_text(source)):
        return None

    def cast(array: Any) -> Any:
        _require(pc.is_in(array, pa.array(["true", "false", None])))
        return pc.equal(array, "true")

    return cast


def _to_integer(source: Any, target: Any, textual: bool, _zone: str) -> Cast | None:
    if is_number(source):
        return lambda array: array.cast(target)
    if not (textual and is_text(source)):
        return None

    def cast(array: Any) -> Any:
        # Arrow would take hexadecimal digits as well.
        _require(pc.match_substring_regex(array, _WHOLE))
        return array.cast(target)

    return cast


def _to_float(source: Any, target: Any, textual: bool, _zone: str) -> Cast | None:
    if is_number(source):
        # A float holds the nearest value of a whole number or decimal.
        return lambda array: _still_finite(array, array.cast(target, safe=False))
    if not is_text(source):
        return None
    words = _NOT_FINITE if textual else _NOT_FINITE_JSON

    def cast(array: Any) -> Any:
        named = pc.match_substring_regex(array, words)
        if not textual:
            _require(named)
        numbers = array.cast(target)
        _require(pc.or_(pc.is_finite(numbers), named))
        return numbers

    return cast


def _to_decimal(source: Any, target: Any, _textual: bool, _zone: str) -> Cast | None:
    if pa.types.is_integer(source):
        wide = pa.decimal128(38, target.scale)
        return lambda array: array.cast(wide).cast(target)
    if pa.types.is_floating(source):
        # The shortest text of a float has the digits that were meant.
        return lambda array: array.cast(pa.string()).cast(target)
    if is_text(source) or pa.types.is_decimal(source):
        return lambda array: array.cast(target)
    return None


def _to_text(source: Any, target: Any, _textual: bool, _zone: str) -> Cast | None:
    return (lambda array: array.cast(target)) if is_text(source) else None


def _to_binary(source: Any, target: Any, _textual: bool, _zone: str) -> Cast | None:
    if is_text(source):
        return lambda array: _from_base64(array, target)
    if any(check(source) for check in _BINARIES):
        return lambda array: array.cast(target)
    return None


def _from_base64(array: Any, target: Any) -> Any:
    try:
        values = [
            None if text is None else binascii.a2b_base64(text, strict_mode=True)
            for text in array.to_pylist()
        ]
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from error
    return pa.array(values, target)


def _to_date(source: Any, target: Any, _textual: bool, _zone: str) -> Cast | None:
    if pa.types.is_date(source):
        return lambda array: _within_days(array.cast(target))
    if not is_text(source):
        return None

    def cast(array: Any) -> Any:
        _require(pc.match_substring_regex(array, _DATE))
        return _within_days(array.cast(target))

    return cast


def _within_days(array: Any) -> Any:
    """Return the array if all of its dates are of the years 1 to 9999."""
    days = array.cast(pa.int32())
    _require(pc.and_(pc.greater_equal(days, _FIRST_DAY), pc.less_equal(days, _LAST_DAY)))
    return array


def _to_time(source: Any, target: Any, textual: bool, zone: str) -> Cast | None:
    value: Cast | None = None
    if pa.types.is_timestamp(source):
        value = _time_of_time(source, target, zone)
    elif is_number(source):
        value = _time_of_number(target)
    elif is_text(source):
        value = _time_of_text(target, textual, zone)
    if value is None:
        return None
    step = value
    return lambda array: _within_years(step(array))


def _time_of_time(source: Any, target: Any, zone: str) -> Cast:
    # A finer unit is cut, a coarser one may be beyond what the target's 64 bits hold.
    safe = _PER_SECOND[source.unit] <= _PER_SECOND[target.unit]
    if source.tz is not None:
        return lambda array: array.cast(target, safe=safe)
    return lambda array: _in_zone(array, zone or "UTC").cast(target, safe=safe)


def _time_of_number(target: Any) -> Cast:
    def cast(array: Any) -> Any:
        whole = array.cast(pa.int64())
        _require(pc.and_(pc.greater_equal(whole, FIRST_MS), pc.less_equal(whole, LAST_MS)))
        return whole.cast(_MS).cast(target)

    return cast


def _time_of_text(target: Any, textual: bool, zone: str) -> Cast:
    of_number = _time_of_number(target)

    def cast(array: Any) -> Any:
        if textual and array.null_count < len(array):
            whole = pc.match_substring_regex(array, _WHOLE)
            if pc.all(whole).as_py():
                return of_number(array)
        try:
            return _parsed(array, target, "UTC")
        except pa.ArrowInvalid:
            if not zone:
                raise
        # Texts of different forms are converted one by one.
        return _in_zone(_parsed(array, target, None), zone).cast(target)

    return cast


def _parsed(array: Any, target: Any, tz: str | None) -> Any:
    """Return the times that ISO 8601 text names; digits beyond the unit are cut."""
    wanted = pa.timestamp(target.unit, tz=tz)
    for unit in dict.fromkeys((target.unit, "us")):
        if unit == "ns":
            break
        try:
            return array.cast(pa.timestamp(unit, tz=tz)).cast(wanted, safe=False)
        except pa.ArrowInvalid:
            continue
    return _in_nanoseconds(array, tz).cast(wanted, safe=False)


def _in_nanoseconds(array: Any, tz: str | None) -> Any:
    # Arrow parses a year that 64 bits of nanoseconds do not hold into another one, silently.
    times = array.cast(pa.timestamp("ns", tz=tz))
    named = pc.utf8_slice_codeunits(array, 0, 4).cast(pa.int64())
    _require(pc.less_equal(pc.abs(pc.subtract(pc.year(times), named)), 1))
    return times


def _in_zone(array: Any, zone: str) -> Any:
    return pc.assume_timezone(array, zone, ambiguous="earliest", nonexistent="earliest")


def _within_years(array: Any) -> Any:
    """Return the array if all of its times are of the years 1 to 9999."""
    per_s = _PER_SECOND[array.type.unit]
    if per_s < _PER_SECOND["ns"]:
        bounds: Any = pc.min_max(array.cast(pa.int64())).as_py()
        first, last = FIRST_MS * per_s // 1000, (LAST_MS + 1) * per_s // 1000
        if bounds["min"] is not None and not first <= bounds["min"] <= bounds["max"] < last:
            raise pa.ArrowInvalid("not of the years 1 to 9999")
    return array


def _still_finite(before: Any, after: Any) -> Any:
    if pa.types.is_floating(before.type):
        _require(pc.or_(pc.invert(pc.is_finite(before)), pc.is_finite(after)))
    else:
        _require(pc.is_finite(after))
    return after


def _require(mask: Any) -> None:
    """Raise `pa.ArrowInvalid` if a value is false; null is allowed."""
    if not pc.all(mask, min_count=0).as_py():
        raise pa.ArrowInvalid("not of the expected form")


_BINARIES: Final = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_binary_view,
)
_TARGETS: Final[tuple[tuple[Any, Any], ...]] = (
    (pa.types.is_boolean, _to_bool),
    (pa.types.is_integer, _to_integer),
    (pa.types.is_floating, _to_float),
    (pa.types.is_decimal, _to_decimal),
    (pa.types.is_string, _to_text),
    (pa.types.is_binary, _to_binary),
    (pa.types.is_date, _to_date),
    (pa.types.is_timestamp, _to_time),
)
