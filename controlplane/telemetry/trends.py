"""Trends of measures: lines through samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.vocabulary import Floats

# The minimum number of points.
LEAST: Final = 8
# Standard errors from which a slope is significant (95 %).
SURE: Final = 2.0


@dataclass(frozen=True)
class Trend:
    """The value of the line at the last sample, and its slope per second.

    `is_step`: two levels, one after the other, fit the samples better than the line.
    """

    now: float
    slope: float
    is_step: bool = False

    def after(self, seconds: float) -> float:
        """Return the value of the line a number of seconds after the last sample."""
        return self.now + self.slope * seconds


def trend_of(times: Sequence[float] | Floats, values: Sequence[float] | Floats) -> Trend | None:
    """Return the least-squares line through samples at times in seconds, None without a trend.

    There is no trend if the slope is not significant. Daily patterns are not modelled.
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
    if abs(slope) <= SURE * error:
        return None
    return Trend(now, slope, _residual_of_step(y) < residual)


def _residual_of_step(values: Floats) -> float:
    """Return the mean squared error of the best two levels, with their degrees of freedom."""
    count = np.arange(1, len(values))
    first = np.cumsum(values)[:-1]
    explained = first**2 / count + (values.sum() - first) ** 2 / (len(values) - count)
    return float((values**2).sum() - explained.max()) / (len(values) - 3)
