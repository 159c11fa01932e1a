"""The cast of an Arrow array to the type of a flat column: one function for each target type.

A value is converted exactly or not at all: the result is null where the target has no equal value,
or the cast raises one of `FAILURES`, and `conversion.convert` finds for which values. Exceptions:
float columns take the nearest float, decimals the shortest text of floats that they do not have,
and times are cut to the unit of their column.
"""

import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from controlplane.wire.records.numbers import (
    is_number,
    is_text,
    keep_where,
    pc,
    to_decimal,
    to_float,
    to_integer,
)
from controlplane.wire.records.times import to_date, to_time

FAILURES: Final = (pa.ArrowException, OverflowError, UnicodeError, ValueError)
Cast = Callable[[Any], Any]
_UTC: Final = (None, "UTC", "Z", "+00:00", "Etc/UTC")


@dataclass(frozen=True)
class Rules:
    """How a source writes values.

    `textual`: numbers and booleans are text, as in CSV. `zone`: the IANA zone of times that name
    none; empty: text without a zone is refused, Arrow's times without one are in UTC.
    `exact_times`: times finer than their column's unit are refused.
    """

    textual: bool = False
    zone: str = ""
    exact_times: bool = False


def cast_to(source: Any, target: Any, rules: Rules) -> Cast | None:
    """Return how arrays of a source type become a flat target type, None if they cannot."""
    if pa.types.is_null(source):
        return lambda array: array.cast(target)
    for is_target, find in _TARGETS.items():
        if is_target(target):
            cast: Cast | None = find(source, target, rules)
            return cast
    return None


def _bool_cast(source: Any, _target: Any, rules: Rules) -> Cast | None:
    if pa.types.is_boolean(source):
        return lambda array: array
    if not (rules.textual and is_text(source)):
        return None
    words = pa.array(["true", "false"])
    return lambda array: pc.equal(keep_where(pc.is_in(array, words), array), "true")


def _integer_cast(source: Any, target: Any, rules: Rules) -> Cast | None:
    if is_number(source) or (rules.textual and is_text(source)):
        return lambda array: to_integer(array, target)
    return None


def _float_cast(source: Any, target: Any, rules: Rules) -> Cast | None:
    if is_number(source) or is_text(source):
        return lambda array: to_float(array, target, textual=rules.textual)
    return None


def _decimal_cast(source: Any, target: Any, _rules: Rules) -> Cast | None:
    if is_number(source) or is_text(source):
        return lambda array: to_decimal(array, target)
    return None


def _text_cast(source: Any, target: Any, _rules: Rules) -> Cast | None:
    return (lambda array: array.cast(target)) if is_text(source) else None


def _binary_cast(source: Any, target: Any, _rules: Rules) -> Cast | None:
    if is_text(source):
        return lambda array: pa.array(map(_from_base64, array.to_pylist()), target)
    if any(check(source) for check in _BINARIES):
        return lambda array: array.cast(target)
    return None


def _from_base64(text: str | None) -> bytes | None:
    try:
        return None if text is None else binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return None


def _date_cast(source: Any, target: Any, _rules: Rules) -> Cast | None:
    is_midnight = pa.types.is_timestamp(source) and source.tz in _UTC
    if is_midnight or pa.types.is_date(source) or is_text(source):
        return lambda array: to_date(array, target)
    return None


def _time_cast(source: Any, target: Any, rules: Rules) -> Cast | None:
    if not (pa.types.is_timestamp(source) or is_number(source) or is_text(source)):
        return None
    textual = rules.textual and is_text(source)
    return lambda array: to_time(
        array, target, rules.zone, textual=textual, exact=rules.exact_times
    )


_BINARIES: Final = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
    pa.types.is_binary_view,
)
_TARGETS: Final[Mapping[Callable[[Any], bool], Callable[[Any, Any, Rules], Cast | None]]] = {
    pa.types.is_boolean: _bool_cast,
    pa.types.is_integer: _integer_cast,
    pa.types.is_floating: _float_cast,
    pa.types.is_decimal: _decimal_cast,
    pa.types.is_string: _text_cast,
    pa.types.is_binary: _binary_cast,
    pa.types.is_date: _date_cast,
    pa.types.is_timestamp: _time_cast,
}
