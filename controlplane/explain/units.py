"""Units of the numbers of an explanation, and their texts."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final


class ValueUnit(StrEnum):
    """The units of the numbers of an explanation."""

    RATE = "records/s"
    RECORDS = "records"
    MS = "ms"
    SHARE = "share"
    RATIO = "ratio"
    BYTES = "bytes"
    COUNT = "count"
    SECONDS = "s"


def quantity(value: float | None, unit: ValueUnit) -> str:
    """Return a number with its unit for sentences: 1,545 records/s, 3.4 s, 46 %."""
    if value is None:
        return "unknown"
    return _WRITERS[unit](value)


def _milliseconds(value: float) -> str:
    return f"{value / 1000:.1f} s" if value >= 1000 else f"{value:.0f} ms"  # noqa: PLR2004


def _share(value: float) -> str:
    scaled = 100 * value
    return f"{scaled:.0f} %" if abs(scaled) >= 10 else f"{scaled:.1f} %"  # noqa: PLR2004


def _size(value: float) -> str:
    return f"{value / 1e6:.1f} MB" if value >= 1e6 else f"{value / 1e3:.1f} kB"  # noqa: PLR2004


def _number(value: float) -> str:
    is_short = abs(value) >= 10 or value == int(value)  # noqa: PLR2004
    return f"{value:,.0f}" if is_short else f"{value:.1f}"


_WRITERS: Final[Mapping[ValueUnit, Callable[[float], str]]] = {
    ValueUnit.MS: _milliseconds,
    ValueUnit.SHARE: _share,
    ValueUnit.RATIO: lambda value: f"{value:.2f}",
    ValueUnit.BYTES: _size,
    ValueUnit.SECONDS: lambda value: f"{value:,.0f} s",
    ValueUnit.COUNT: lambda value: f"{value:,.0f}",
    ValueUnit.RATE: lambda value: f"{_number(value)} {ValueUnit.RATE}",
    ValueUnit.RECORDS: lambda value: f"{_number(value)} {ValueUnit.RECORDS}",
}


def pair(before: float | None, after: float | None, unit: ValueUnit) -> str:
    """Return two numbers of a unit: from 118 to 616 records/s."""
    if before is None:
        return f"to {quantity(after, unit)}"
    first, second = quantity(before, unit), quantity(after, unit)
    number, _, name = first.rpartition(" ")
    return f"from {number if second.endswith(f' {name}') and number else first} to {second}"
