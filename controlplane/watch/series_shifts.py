"""Shifts of the mean of series, and since when a limit is exceeded."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.vocabulary import Flags, Floats, Ints

# Samples on both sides of a shift, so that one slow micro-batch is none.
LEAST: Final = 3
# Standard errors of a shift: it is the largest of many candidates.
SURE: Final = 4.0
# Series that are computed together: their arrays stay in the cache of a core.
_BLOCK: Final = 256


@dataclass(frozen=True, eq=False)
class Shifts:
    """The largest shift of the mean of each of s series.

    `places` int64[s]: the first sample after the shift. `before`, `after` float64[s]: the means on
    both sides. `scores` float64[s]: the cumulated sum (CUSUM) there in standard errors, 0 without a
    shift.
    """

    places: Ints
    before: Floats
    after: Floats
    scores: Floats

    @property
    def are_sure(self) -> Flags:
        """Return for each series whether its shift is larger than chance, bool[s]."""
        return self.scores >= SURE

    def is_sure(self, series: int) -> bool:
        """Return True if the shift of a series is larger than chance."""
        return bool(self.are_sure[series])


def largest_shifts(values: Floats) -> Shifts:
    """Return the place where the mean of each row changes most: the maximum of its CUSUM.

    `values` float64[s, t]; missing values count as those before them.
    """
    rows, length = values.shape
    if length < 2 * LEAST or not rows:
        means = _means(values)
        return Shifts(np.zeros(rows, np.int64), means, means, np.zeros(rows))
    parts = [_shifts(values[first : first + _BLOCK]) for first in range(0, rows, _BLOCK)]
    columns = ("places", "before", "after", "scores")
    return Shifts(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))


def _shifts(values: Floats) -> Shifts:
    rows, length = values.shape
    filled = filled_forward(values)
    sums = np.cumsum(filled, axis=1)
    counts = np.arange(1, length)
    left = sums[:, :-1] / counts
    right = (sums[:, -1:] - sums[:, :-1]) / (length - counts)
    weight = np.sqrt(counts * (length - counts) / length)
    cusum = np.abs(right - left) * weight
    inner = cusum[:, LEAST - 1 : length - LEAST]
    best = np.argmax(inner, axis=1) + LEAST - 1
    every = np.arange(rows)
    before, after = left[every, best], right[every, best]
    noise = _noise(filled, best + 1, before, after)
    scores = np.where(cusum[every, best] > 0, cusum[every, best] / noise, 0.0)
    return Shifts(best.astype(np.int64) + 1, before, after, scores)


def _noise(values: Floats, places: Ints, before: Floats, after: Floats) -> Floats:
    """Return the standard deviation of each row around its two means, at least of a count."""
    steps = np.arange(values.shape[1])[None, :] >= places[:, None]
    fitted = np.where(steps, after[:, None], before[:, None])
    spread: Floats = np.sqrt(((values - fitted) ** 2).sum(axis=1) / max(1, values.shape[1] - 2))
    # Even counts of a regular source vary: by the root of their number over ten seconds.
    least = np.sqrt(np.maximum(np.maximum(before, after), 1.0) / 10)
    noise: Floats = np.maximum(spread, least)
    return noise


def _means(values: Floats) -> Floats:
    known = ~np.isnan(values)
    counts = known.sum(axis=1)
    means: Floats = np.where(known, values, 0.0).sum(axis=1) / np.maximum(counts, 1)
    return means


def filled_forward(values: Floats) -> Floats:
    """Return the rows with the value before each missing one, the first known one before it."""
    known = ~np.isnan(values)
    if known.all():
        return values
    places = np.where(known, np.arange(values.shape[1])[None, :], 0)
    last = np.maximum.accumulate(places, axis=1)
    filled = np.take_along_axis(values, last, axis=1)
    first = np.take_along_axis(values, known.argmax(axis=1)[:, None], axis=1)
    result: Floats = np.nan_to_num(np.where(np.isnan(filled), first, filled))
    return result


def exceeded_since(values: Floats, limit: float) -> int | None:
    """Return the place since which values exceed a limit without a break of `LEAST` samples.

    None if the newest known values do not exceed it. Missing values are not a break.
    """
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        return None
    above = values[known] > limit
    if not above[-LEAST:].any():
        return None
    since, calm = len(above) - 1, 0
    for place in range(len(above) - 1, -1, -1):
        calm = 0 if above[place] else calm + 1
        if above[place]:
            since = place
        if calm >= LEAST:
            break
    return int(known[since])
