"""The cast of an Arrow array to the type of a flat column: one function for each target type.

A value is converted exactly or not at all: the result is null where the target has no equal value,
or the cast raises one of `FAILURES`, and `conversion.convert` finds for which values. Exceptions:
float columns take the nearest float, decimals the shortest text of floats that they do not have,
and times are cut to the unit of their column. A time is computed as whole seconds and nanoseconds
since 1970, so no unit is too narrow.
"""

import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from controlplane.wire.records.numbers import (
    INT64_TEXT,
    is_number,
    is_text,
    keep_where,
    pc,
    to_decimal,
    to_float,
    to_integer,
)

FAILURES: Final = (pa.ArrowException, OverflowError, UnicodeError, ValueError)
Cast = Callable[[Any], Any]
_PER_SECOND: Final = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_MS: Final = pa.timestamp("ms", tz="UTC")
_US: Final = pa.timestamp("us", tz="UTC")
_DAY_S: Final = 86_400
# The first second of year 1, and that of year 10,000.
_FIRST_S: Final = -62_135_596_800
_END_S: Final = 253_402_300_800
# The first and last seconds and nanoseconds of 64 bits of nanoseconds; the least number is not a
# time.
_FIRST_NS: Final = (-9_223_372_037, 145_224_193)
_LAST_NS: Final = (9_223_372_036, 854_775_807)
_DATE: Final = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME: Final = (
    r"^(?P<clock>[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}(?::[0-9]{2}(?::[0-9]{2})?)?)"
    r"(?:\.(?P<digits>[0-9]{1,9}))?(?P<zone>Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?$"
)
_WITH_SECONDS: Final = 19
_MICROSECOND_DIGITS: Final = 6


@dataclass(frozen=True)
class CastRules:
    """How a source writes values.

    `textual`: numbers and booleans are text, as in CSV. `zone`: the IANA zone of times that name
    none; empty: text without a zone is refused, Arrow's times without one are in UTC.
    `exact_times`: times finer than their column's unit are refused.
    """

    textual: bool = False
    zone: str = ""
    exact_times: bool = False


def cast_to(source: Any, target: Any, rules: CastRules) -> Cast | None:
    """Return how arrays of a source type become a flat target type, None if they cannot."""
    if pa.types.is_null(source):
        return lambda array: array.cast(target)
    rows = (row for row in _TARGETS if row[0](target))
    _, sources, cast = next(rows, (None, (), None))
    if cast is None or not (
        (rules.textual and is_text(source)) or any(check(source) for check in sources)
    ):
        return None
    return lambda array: cast(array, target, rules)


def _to_bool(array: Any, _target: Any, _rules: CastRules) -> Any:
    if pa.types.is_boolean(array.type):
        return array
    return pc.equal(keep_where(pc.is_in(array, pa.array(["true", "false"])), array), "true")


def _to_binary(array: Any, target: Any, _rules: CastRules) -> Any:
    if is_text(array.type):
        return pa.array(map(_from_base64, array.to_pylist()), target)
    return array.cast(target)


def _from_base64(text: str | None) -> bytes | None:
    try:
        return None if text is None else binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return None


def _to_time(array: Any, target: Any, rules: CastRules) -> Any:
    return to_time(array, target, rules.zone, textual=rules.textual, exact=rules.exact_times)


def _is_midnight(source: Any) -> bool:
    """Return True for times that may be the beginning of a date."""
    return pa.types.is_timestamp(source) and source.tz in (None, "UTC", "Z", "+00:00", "Etc/UTC")


# By target type: the types of Arrow that it takes, besides text in a format of text, and its cast.
_TARGETS: Final[tuple[tuple[Any, tuple[Any, ...], Callable[[Any, Any, CastRules], Any]], ...]] = (
    (pa.types.is_boolean, (pa.types.is_boolean,), _to_bool),
    (pa.types.is_integer, (is_number,), lambda array, target, _: to_integer(array, target)),
    (
        pa.types.is_floating, (is_number, is_text),
        lambda array, target, rules: to_float(array, target, textual=rules.textual),
    ),
    (pa.types.is_decimal, (is_number, is_text), lambda array, target, _: to_decimal(array, target)),
    (pa.types.is_string, (is_text,), lambda array, target, _: array.cast(target)),
    (
        pa.types.is_binary,
        (is_text, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary,
         pa.types.is_binary_view),
        _to_binary,
    ),
    (
        pa.types.is_date, (pa.types.is_date, _is_midnight, is_text),
        lambda array, target, _: to_date(array, target),
    ),
    (pa.types.is_timestamp, (pa.types.is_timestamp, is_number, is_text), _to_time),
)  # fmt: skip


class _Times(NamedTuple):
    """Times by record: seconds since 1970, nanoseconds of the second, False where there is none."""

    seconds: NDArray[np.int64]
    nanoseconds: NDArray[np.int64]
    known: NDArray[np.bool_]


def to_date(array: Any, target: Any) -> Any:
    """Return dates, midnights of UTC, or text as dates."""
    source = array.type
    if is_text(source):
        known = pc.match_substring_regex(array, _DATE)
        return to_date(keep_where(known, array).cast(target), target)
    per_day = 1 if pa.types.is_date32(source) else _DAY_S * 1000
    if pa.types.is_timestamp(source):
        per_day = _DAY_S * _PER_SECOND[source.unit]
    days, rest = np.divmod(_ticks(array), per_day)
    known = (rest == 0) & (days >= _FIRST_S // _DAY_S) & (days < _END_S // _DAY_S)
    known &= np.asarray(array.is_valid())
    return pa.array(np.where(known, days, 0).astype(np.int32), target, mask=~known)


def to_time(array: Any, target: Any, zone: str, *, textual: bool, exact: bool) -> Any:
    """Return times, ISO 8601 text, or whole milliseconds since 1970 as times.

    `zone`: the IANA time zone of times that name none; empty: text without a zone is refused,
    Arrow times without one are in UTC. `textual`: text may be a number. `exact`: a time between
    two of the target's unit is refused; without it, the earlier one.
    """
    source = array.type
    if is_text(source):
        return _time_of_text(array, target, zone, textual=textual, exact=exact)
    if is_number(source):
        array = to_integer(array, pa.int64()).view(_MS)
        source = _MS
    if source.unit == target.unit and (source.tz or not zone):
        return _within_years(array.cast(target))
    times = _of_ticks(array, _PER_SECOND[source.unit])
    if source.tz is None and zone:
        times = _in_zone(times, zone)
    return _array_of(times, target, exact=exact)


def _time_of_text(texts: Any, target: Any, zone: str, *, textual: bool, exact: bool) -> Any:
    if textual and pc.all(pc.match_substring_regex(texts, INT64_TEXT), min_count=0).as_py():
        return to_time(texts.cast(pa.int64()), target, "", textual=False, exact=exact)
    try:
        # Arrow parses most texts; microseconds have all years of four digits.
        return to_time(texts.cast(_US), target, "", textual=False, exact=exact)
    except pa.ArrowInvalid:
        if not textual:
            return _array_of(_of_text(texts, zone), target, exact=exact)
    numbers = to_integer(texts, pa.int64())
    times = to_time(numbers, target, "", textual=False, exact=exact)
    others = keep_where(numbers.is_null(), texts)
    if others.null_count == len(others):
        return times
    return pc.coalesce(times, _array_of(_of_text(others, zone), target, exact=exact))


def _within_years(array: Any) -> Any:
    """Return times with null for those of other years than 1 to 9999."""
    ticks = array.view(pa.int64())
    # The least number of 64 bits is not a time in numpy and pandas.
    first, end = -(2**63) + 1, 2**63 - 1
    if array.type.unit != "ns":
        per_s = _PER_SECOND[array.type.unit]
        first, end = _FIRST_S * per_s, _END_S * per_s - 1
    return keep_where(pc.and_(pc.greater_equal(ticks, first), pc.less_equal(ticks, end)), array)


def _of_ticks(array: Any, per_s: int) -> _Times:
    """Return times that are whole numbers of a unit."""
    seconds, rest = np.divmod(_ticks(array), per_s)
    return _Times(seconds, rest * (_PER_SECOND["ns"] // per_s), np.asarray(array.is_valid()))


def _ticks(array: Any) -> NDArray[np.int64]:
    """Return the numbers behind dates and times, 0 for null."""
    bits = pa.int32() if array.type.bit_width == 32 else pa.int64()  # noqa: PLR2004 - date32
    return np.asarray(array.view(bits).fill_null(0)).astype(np.int64)


def _of_text(texts: Any, zone: str) -> _Times:
    clock, digits, named = pc.extract_regex(texts, _TIME).flatten()
    # Only seconds have a fraction.
    is_whole = pc.equal(digits, "")
    clock = keep_where(pc.or_(is_whole, pc.equal(pc.utf8_length(clock), _WITH_SECONDS)), clock)
    seconds, _, known = _of_ticks(clock.cast(pa.timestamp("s")), 1)
    parts = pc.utf8_rpad(pc.replace_substring(named, ":", ""), 5, "0")
    hours, minutes = (_whole(pc.utf8_slice_codeunits(parts, first, first + 2)) for first in (1, 3))
    east = np.asarray(pc.fill_null(pc.starts_with(parts, "+"), fill_value=False))
    ahead = np.where(east, 1, -1) * (hours * 60 + minutes) * 60
    nanoseconds = _whole(pc.utf8_slice_codeunits(pc.utf8_rpad(digits, 9, "0"), 0, 9))
    local = np.asarray(pc.fill_null(pc.equal(named, ""), fill_value=False))
    times = _Times(seconds - ahead, nanoseconds, known & ~local)
    if zone and local.any():
        zoned = _in_zone(_Times(seconds, nanoseconds, known & local), zone)
        chosen = np.where(local, zoned.seconds, times.seconds)
        times = _Times(chosen, nanoseconds, times.known | zoned.known)
    # Text with nanoseconds is of the years that a column of nanoseconds has.
    is_fine = pc.greater(pc.utf8_length(digits), _MICROSECOND_DIGITS)
    is_fine = np.asarray(pc.fill_null(is_fine, fill_value=False))
    return times._replace(known=times.known & (_in_nanoseconds(times) | ~is_fine))


def _whole(digits: Any) -> NDArray[np.int64]:
    return np.asarray(pc.fill_null(digits, "0").cast(pa.int64()))


def _in_zone(times: _Times, zone: str) -> _Times:
    """Return local times of a zone in UTC.

    Of two times of one name the earlier; a time that the zone's clocks skip is none.
    """
    seconds = np.clip(times.seconds, _FIRST_S - _DAY_S, _END_S + _DAY_S)
    local = pa.array(seconds).cast(pa.timestamp("s"))
    moments = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest")
    exists = np.asarray(pc.equal(pc.local_timestamp(moments), local))
    return _Times(np.asarray(moments.cast(pa.int64())), times.nanoseconds, times.known & exists)


def _array_of(times: _Times, target: Any, *, exact: bool) -> Any:
    seconds, nanoseconds, known = times
    per_s = _PER_SECOND[target.unit]
    known = known & (seconds >= _FIRST_S) & (seconds < _END_S)
    if target.unit == "ns":
        known &= _in_nanoseconds(times)
    ticks, rest = np.divmod(nanoseconds, _PER_SECOND["ns"] // per_s)
    if exact:
        known &= rest == 0
    # The first second of nanoseconds is beyond 64 bits, and its sum is not.
    ticks = np.where(known, seconds, 0) * per_s + np.where(known, ticks, 0)
    return pa.array(ticks, mask=~known).cast(target)


def _in_nanoseconds(times: _Times) -> NDArray[np.bool_]:
    """Return which times 64 bits of nanoseconds hold."""
    first_s, first_ns = _FIRST_NS
    last_s, last_ns = _LAST_NS
    seconds, nanoseconds, _ = times
    after = (seconds > first_s) | ((seconds == first_s) & (nanoseconds >= first_ns))
    before = (seconds < last_s) | ((seconds == last_s) & (nanoseconds <= last_ns))
    return np.asarray(after & before)
