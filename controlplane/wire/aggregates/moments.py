"""Count, mean and spread of numbers in groups: stable where the mean is large, and mergeable.

The mean is a float and the rest that the float cannot hold. The spread is the sum of squared
distances from the mean. Parts merge by the formula of Chan, Golub and LeVeque (Updating formulae
and a pairwise algorithm for computing sample variances, 1979), here any number at once.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
# Weight, mean, rest and spread of each group.
Moments = tuple[Any, Any, Any, Any]


def moments_of(values: Floats, valid: NDArray[np.bool_], starts: Int64s) -> Moments:
    """Return the moments of each group of values.

    `values`: float64[n], those of a group side by side, `starts`: where each group begins;
    `valid`: which of them are there. Without a value all moments are 0.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        weight = np.add.reduceat(valid.astype(np.int64), starts)
        mean = _mean(np.where(valid, values, 0.0), weight, starts)
        distance = np.where(valid, values - np.repeat(mean, _lengths(starts, len(values))), 0.0)
        # The mean of many large numbers is rounded; the rest is small.
        rest = _mean(distance, weight, starts)
        spread = np.add.reduceat(distance * distance, starts) - weight * rest * rest
        return weight, mean, rest, np.maximum(spread, 0.0)


def merge_moments(
    weight: Int64s, mean: Floats, rest: Floats, spread: Floats, starts: Int64s
) -> Moments:
    """Return the moments of each group of adjacent parts."""
    lengths = _lengths(starts, len(mean))
    with np.errstate(invalid="ignore", over="ignore"):
        total = np.add.reduceat(weight, starts)
        # Distances from the part with most values have the smallest rounding errors.
        pivot = _heaviest(weight, starts, lengths)
        distance = mean - np.repeat(mean[pivot], lengths) + (rest - np.repeat(rest[pivot], lengths))
        distance = np.where(weight > 0, distance, 0.0)
        shift = np.add.reduceat(weight * distance, starts) / np.maximum(total, 1)
        distance -= np.where(weight > 0, np.repeat(shift, lengths), 0.0)
        merged = np.add.reduceat(spread + weight * distance * distance, starts)
        moved = mean[pivot] + (rest[pivot] + shift)
        left = np.where(np.isfinite(moved), mean[pivot] - moved + (rest[pivot] + shift), 0.0)
        return total, moved, left, merged


def _heaviest(weight: Int64s, starts: Int64s, lengths: Int64s) -> Int64s:
    """Return the place of a part with the largest weight of each group."""
    most = np.repeat(np.maximum.reduceat(weight, starts), lengths)
    places = np.where(weight == most, np.arange(len(weight)), len(weight))
    return np.asarray(np.minimum.reduceat(places, starts))


def _mean(values: Floats, weight: Int64s, starts: Int64s) -> Floats:
    return np.asarray(np.add.reduceat(values, starts) / np.maximum(weight, 1))


def _lengths(starts: Int64s, size: int) -> Int64s:
    return np.diff(np.append(starts, size))
