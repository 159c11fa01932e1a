"""Trend of a measure: a least-squares line through its last samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

# Fewer points than this say nothing about a slope.
LEAST: Final = 8
# A slope counts from twice its standard error on: what noise alone gives once in twenty times.
SURE: Final = 2.0


@dataclass(frozen=True)
class Trend:
    """The value that the line has at the last sample, and how much it rises per second."""

    now: float
    slope: float

    def after(self, seconds: float) -> float:
        """Return the value of the line a number of seconds after the last sample."""
        return self.now + self.slope * seconds


def trend_of(times: Sequence[float], values: Sequence[float]) -> Trend | None:
    """Return the least-squares line through samples at times in seconds, None without a trend.

    It is none where samples are few, or where their noise could as well have made the slope. A
    line fits a load that grows over minutes; a forecast of what recurs by day is no matter for
    a watch loop.
    """
    if len(times) < LEAST:
        return None
    t = np.asarray(times, np.float64) - times[-1]
    y = np.asarray(values, np.float64)
    spread = float(((t - t.mean()) ** 2).sum())
    if spread <= 0:
        return None
    slope = float(((t - t.mean()) * (y - y.mean())).sum()) / spread
    now = float(y.mean() - slope * t.mean())
    residual = float(((y - (now + slope * t)) ** 2).sum()) / (len(times) - 2)
    error = (residual / spread) ** 0.5
    return Trend(now, slope) if abs(slope) > SURE * error else None
