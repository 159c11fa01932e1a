"""Tables and lines of a query's windows."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from operator import itemgetter
from typing import Any

from controlplane.catalog.computations import OutputColumn
from controlplane.numbers import MISSING, percent, result
from controlplane.results.values import KeyedWindow
from dashboard.figures.results import DrawnPoint
from dashboard.forms import number

# More lines are indistinguishable.
SHOWN_KEYS = 6
_DRAWN = ("int", "decimal", "float")
_LARGE = 1_000
_NEARLY_ALL = 0.99
_KEPT_ONLY = "of the kept records only"


@dataclass(frozen=True)
class ResultCell:
    """A formatted value; numbers are right-aligned. `title`: how far it is an estimate."""

    text: str
    is_number: bool = False
    name: str = ""
    title: str = ""


@dataclass(frozen=True)
class ResultRow:
    """A formatted window of one key: the key, then the aggregates.

    `kept`: the part of its records that drop rules kept, empty for all.
    """

    start: datetime
    cells: list[ResultCell]
    state: str = "open"
    changed_at: datetime | None = None
    kept: str = ""


def result_rows(
    windows: Sequence[KeyedWindow], columns: Sequence[OutputColumn], *, is_scaled: bool = False
) -> list[ResultRow]:
    """Return the formatted windows, in their order.

    `is_scaled`: with estimates of counts and sums in place of those of the kept records.
    """
    numbers = set(drawn_values(columns))
    return [
        ResultRow(
            window.start,
            [
                *(ResultCell(key_text(value), name=name) for name, value in window.key.items()),
                *(
                    _value_cell(window, name, is_number=name in numbers, is_scaled=is_scaled)
                    for name in window.values
                ),
            ],
            str(window.state),
            window.changed_at,
            _kept(window.kept),
        )
        for window in windows
    ]


def _value_cell(window: KeyedWindow, name: str, *, is_number: bool, is_scaled: bool) -> ResultCell:
    text = window.errors.get(name) or result(window.values[name])
    if window.kept == 1:
        return ResultCell(text, is_number, name)
    estimate = window.estimates.get(name) if is_scaled else None
    if estimate is None:
        return ResultCell(text, is_number, name, _KEPT_ONLY.capitalize())
    is_whole = isinstance(window.values[name], int)

    def rounded(number: float) -> str:
        return result(round(number) if is_whole or abs(number) >= _LARGE else number)

    title = f"{text} in the kept records"
    if estimate.low is not None and estimate.high is not None:
        low, high = rounded(estimate.low), rounded(estimate.high)
        title = f"{low} to {high} with 95 % confidence; {title}"
    return ResultCell(f"\N{ALMOST EQUAL TO} {rounded(estimate.value)}", is_number, name, title)


def _kept(fraction: float | None) -> str:
    if fraction is None:
        return "unknown"
    if fraction == 1:
        return ""
    return "> 99 %" if fraction > _NEARLY_ALL else percent(fraction)


def key_text(value: Any) -> str:
    """Return a value of a key: what names something has no separators of thousands."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else result(value)


def drawn_values(columns: Sequence[OutputColumn]) -> list[str]:
    """Return the aggregates that can be drawn as a line."""
    return [
        column.name for column in columns if column.role == "aggregate" and column.kind in _DRAWN
    ]


def lines_of(
    windows: Sequence[KeyedWindow], value: str, *, is_scaled: bool = False
) -> dict[str, list[DrawnPoint]]:
    """Return the points of windows by key, oldest first, of the keys that have most windows.

    `is_scaled`: as in `result_rows`.
    """
    points: dict[str, list[DrawnPoint]] = {}
    for window in windows:
        estimate = window.estimates.get(value) if is_scaled else None
        drawn = _drawn(window.values[value]) if estimate is None else estimate.value
        note = "" if window.kept == 1 else _KEPT_ONLY if estimate is None else "an estimate"
        point = DrawnPoint(round(window.start.timestamp() * 1000), drawn, note)
        points.setdefault(_name(window.key), []).append(point)
    order = sorted(points, key=lambda name: (-len(points[name]), name))
    gaps = _gaps({point[0] for line in points.values() for point in line})
    return {name: _broken(sorted(points[name], key=itemgetter(0)), gaps)
            for name in order[:SHOWN_KEYS]}  # fmt: skip


def _gaps(starts: Collection[int]) -> list[int]:
    """Return where windows of all keys are missing, in ms: behind the last one before each gap."""
    steps = sorted(pairwise(sorted(starts)), key=lambda pair: pair[1] - pair[0])
    least = steps[0][1] - steps[0][0] if steps else 0
    return [start + least for start, stop in steps if stop - start > least]


def _broken(points: list[DrawnPoint], gaps: Sequence[int]) -> list[DrawnPoint]:
    """Return the points of a line with an empty one in every gap that it passes."""
    ends = points[0][0], points[-1][0]
    empty = [DrawnPoint(gap, None) for gap in gaps if ends[0] < gap < ends[1]]
    return sorted([*points, *empty], key=itemgetter(0))


def _drawn(value: Any) -> Any:
    """Return the number that a chart draws, None for a value that is not a finite number.

    Decimals, NaN and infinities are texts in results.
    """
    if not isinstance(value, str):
        return value
    drawn = number(value)
    return drawn if math.isfinite(drawn) else None


def _name(key: Mapping[str, Any]) -> str:
    return " · ".join(key_text(value) for value in key.values()) or MISSING
