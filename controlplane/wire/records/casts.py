"""The cast of an Arrow array to the type of a flat column: one function for each target type.

A value is converted exactly or not at all: the result is null where the target has no equal value,
or the cast raises one of `FAILURES`, and `conversion.convert` finds for which values. Exceptions:
float columns take the nearest float, decimals the shortest text of floats that they do not have,
and times are cut to the unit of their column.
"""

import binascii
from collections.abc import Callable
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
