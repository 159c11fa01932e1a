"""Parts of the drawings that the server makes itself, as SVG: scales, ticks, lines and lengths.

Live charts of pages are drawn by Plotly in the browser (dashboard/figures).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar

_Value = TypeVar("_Value", float, datetime)
# A point with a value, or a gap of the line.
Points = Iterable[tuple[float, float | None]]
_ROUND: Final = (1.0, 2.0, 2.5, 5.0, 10.0)


def percent(part: float, whole: float = 1.0) -> str:
    """Return a part of a whole as a length within the drawing."""
    return f"{100 * _clamped(part / whole):.2f}%" if whole else "0%"


def _clamped(share: float) -> float:
    return min(1.0, max(0.0, share))


@dataclass(frozen=True)
class Scale(Generic[_Value]):
    """Positions from `start` to `stop` of the values from `low` to `high`, both included."""

    low: _Value
    high: _Value
    start: float = 0.0
    stop: float = 1.0

    def share(self, value: _Value) -> float:
        """Return the part of the scale below a value, from 0 to 1; 0.5 if its ends are equal."""
        return _clamped((value - self.low) / (self.high - self.low)) if self._is_wide else 0.5

    def __call__(self, value: _Value) -> float:
        """Return the position of a value."""
        return self.start + self.share(value) * (self.stop - self.start)

    def percent(self, value: _Value) -> str:
        """Return the position of a value as a length within the drawing."""
        return percent(self.share(value))

    @property
    def _is_wide(self) -> bool:
        return self.low != self.high


class LogScale(Scale[float]):
    """A scale by powers of ten."""

    def share(self, value: float) -> float:
        """Return the part of the scale below a value; 0 for one below its low end."""
        if value <= self.low or not self._is_wide:
            return 0.0
        return _clamped(math.log(value / self.low) / math.log(self.high / self.low))


def round_values(low: float, high: float, count: int) -> list[float]:
    """Return round values between two values, at equal distances, about `count`."""
    least = (high - low) / count or 1.0
    power = 10.0 ** math.floor(math.log10(least))
    step = next(power * factor for factor in _ROUND if power * factor >= least)
    return [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]


def line(points: Points) -> str:
    """Return the path through points, with gaps."""
    return "".join(f"M{'L'.join(map(_place, run))}" for run in _runs(points))


def area(points: Points, floor: float) -> str:
    """Return the outline of the area between a line with gaps and its floor."""
    return "".join(
        f"M{_place((run[0][0], floor))}L{'L'.join(map(_place, run))}L{_place((run[-1][0], floor))}Z"
        for run in _runs(points)
    )


def _place(point: tuple[float, float]) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _runs(points: Points) -> Sequence[Sequence[tuple[float, float]]]:
    """Return the points between gaps."""
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is not None:
            runs[-1].append((x, y))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
