"""Leave out rows that others replace within epsilon, where all limits of a tree are known.

The paper keeps one of several entries with similar rates and scores (section 6.3). Here a row is
left out only if a row below it still has 1 - epsilon of an upper bound of the results at any rates
that round down to the former.
"""

from typing import Final

import numpy as np

from algorithms.compiled import compiled
from algorithms.vocabulary import Flags, Floats, Ints

# Smaller tables stay as they are, with smaller errors.
COVER_ABOVE: Final = 1_000


def covering_rows(
    levels: list[Floats], places: Ints, limits: Floats, values: Floats, epsilon: float
) -> Flags:
    """Return which rows are kept, bool[n].

    `levels`: the samples of each stream; `places` int64[n, e]: rows as numbers of samples, those
    that `grid` returns with `outer`; `limits` float64[r, e]: of all resources that any record
    uses; `values` float64[e]: results per record.
    """
    rates = _rates(levels, places)
    last = np.array([len(level) - 1 for level in levels])
    above = _rates(levels, np.minimum(places + 1, last))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(limits > 0, values / limits, np.inf)
    bounds = np.empty(len(rates))
    _bounds(above, limits, values, np.argsort(-ratios, axis=1, kind="stable"), bounds)
    scores = rates @ values
    order = np.argsort(scores, kind="stable")
    return np.asarray(_cover(rates, scores, order, (1 - epsilon) * bounds))


def _rates(levels: list[Floats], places: Ints) -> Floats:
    return np.column_stack([level[column] for level, column in zip(levels, places.T, strict=True)])


@compiled
def _bounds(above: Floats, limits: Floats, values: Floats, orders: Ints, bounds: Floats) -> None:
    """Set upper bounds of the results below rates: the smallest of those of single resources."""
    for row in range(len(above)):
        bounds[row] = np.inf
        for resource in range(len(limits)):
            room, total = 1.0 + 1e-12, 0.0
            for stream in orders[resource]:
                rate = above[row, stream]
                if limits[resource, stream] * rate > room:
                    total += values[stream] * room / limits[resource, stream]
                    break
                room -= limits[resource, stream] * rate
                total += values[stream] * rate
            bounds[row] = min(bounds[row], total)


@compiled
def _cover(rates: Floats, scores: Floats, order: Ints, needed: Floats) -> Flags:
    """Keep a row, from the lowest score up, unless a kept row below it has the needed score."""
    result = np.zeros(len(rates), np.bool_)
    kept = np.empty(len(rates), np.int64)
    kept_scores = np.empty(len(rates))
    count = 0
    for row in order:
        first = np.searchsorted(kept_scores[:count], needed[row])
        is_covered = False
        for place in range(count - 1, first - 1, -1):
            below = True
            for stream in range(rates.shape[1]):
                if rates[kept[place], stream] > rates[row, stream]:
                    below = False
                    break
            if below:
                is_covered = True
                break
        if not is_covered:
            kept[count], kept_scores[count] = row, scores[row]
            count += 1
            result[row] = True
    return result
