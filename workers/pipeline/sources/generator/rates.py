"""The shape of a rate: how many events have occurred at a time, and when an event occurs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class RateShape:
    """A rate as straight lines between points [second, events/s].

    After the last point its rate holds; with `period_s` the shape repeats.
    """

    def __init__(self, points: Sequence[Sequence[float]], period_s: float = 0.0) -> None:
        self._seconds = np.array([second for second, _ in points], np.float64)
        self._rates = np.array([rate for _, rate in points], np.float64)
        if period_s > self._seconds[-1]:
            self._seconds = np.append(self._seconds, period_s)
            self._rates = np.append(self._rates, self._rates[-1])
        widths = np.diff(self._seconds)
        areas = widths * (self._rates[1:] + self._rates[:-1]) / 2
        self._sums = np.concatenate([[0.0], np.cumsum(areas)])
        self._slopes = np.append(np.diff(self._rates) / widths, 0.0)
        self._period_s = period_s

    def count_at(self, second: float) -> int:
        """Return how many events have occurred in the first seconds."""
        if second <= 0:
            return 0
        whole, rest = divmod(second, self._period_s) if self._period_s else (0.0, second)
        place = int(np.searchsorted(self._seconds, rest, "right")) - 1
        width = rest - self._seconds[place]
        part = self._rates[place] * width + self._slopes[place] * width**2 / 2
        # A rounded sum must not hide an event that has just occurred.
        return int(whole * self._sums[-1] + self._sums[place] + part + 1e-6)

    def seconds_of(self, numbers: Array) -> Array:
        """Return the seconds at which events with these numbers, from 0, occur."""
        counts = np.asarray(numbers, np.float64) + 1
        whole = np.zeros_like(counts)
        if self._period_s:
            whole = np.ceil(counts / self._sums[-1]) - 1
            counts = counts - whole * self._sums[-1]
        place = np.maximum(np.searchsorted(self._sums, counts, "left") - 1, 0)
        rest, rate, slope = counts - self._sums[place], self._rates[place], self._slopes[place]
        root = rate + np.sqrt(np.maximum(rate**2 + 2 * slope * rest, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            width = np.where(rest > 0, 2 * rest / root, 0.0)
        return np.asarray(whole * self._period_s + self._seconds[place] + width)
