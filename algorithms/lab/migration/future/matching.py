"""The cost of a change from one given partitioning to another: a matching of intervals."""

from collections.abc import Sequence

import numpy as np

from algorithms.compiled import compiled
from algorithms.optimizers import best_assignment
from algorithms.vocabulary import Floats, Ints


@compiled
def retained_bytes(kept: Floats, old: Ints, new: Ints) -> float:
    """Return the most bytes that stay when the intervals `new` go to the nodes of `old`.

    `kept` float64[m + 1]: bytes before each position. `old` int64[n + 1], `new` int64[n' + 1]:
    where intervals begin and the last ends; empty ones are allowed. Intervals that overlap form a
    staircase, so the best matching is found in one pass over its steps: a step may be taken after
    the best of those before the first that shares its old or its new interval.
    """
    best = np.zeros(len(old) + len(new))
    count, row, column = 0, 0, 0
    first_in_row, first_in_column = 0, 0
    while row < len(old) - 1 and column < len(new) - 1:
        low, high = max(old[row], new[column]), min(old[row + 1], new[column + 1])
        stays = kept[high] - kept[low] if high > low else 0.0
        best[count + 1] = max(best[count], best[min(first_in_row, first_in_column)] + stays)
        count += 1
        ends = old[row + 1], new[column + 1]
        if ends[0] <= ends[1]:
            row, first_in_row = row + 1, count
        if ends[1] <= ends[0]:
            column, first_in_column = column + 1, count
    return float(best[count])


@compiled
def costs_between(kept: Floats, olds: Ints, news: Ints) -> Floats:
    """Return the bytes that move from each of `olds` to each of `news`, float64[K, K']."""
    costs = np.empty((len(olds), len(news)))
    for number in range(len(olds)):
        for other in range(len(news)):
            costs[number, other] = kept[-1] - retained_bytes(kept, olds[number], news[other])
    return costs


def match_nodes(kept: Floats, old: Ints, names: Sequence[int], new: Ints) -> list[int]:
    """Return the node of each new interval, so that the most bytes stay.

    `kept` float64[m + 1]: bytes before each position. `names`: the nodes of the old intervals.
    An interval without a keeper goes to the lowest of the other old nodes, then to new ones,
    numbered on from the highest.
    """
    low = np.maximum(old[:-1, None], new[None, :-1])
    high = np.minimum(old[1:, None], new[None, 1:])
    stays = np.where(high > low, kept[high] - kept[np.minimum(low, high)], 0.0)
    rows, columns = best_assignment(stays)
    pairs = {
        int(column): names[row]
        for row, column in zip(rows, columns, strict=True)
        if stays[row, column] > 0
    }
    idle = sorted(set(names) - set(pairs.values()))
    fresh = iter(range(max(names) + 1, max(names) + 1 + len(new)))
    return [
        pairs[part] if part in pairs else idle.pop(0) if idle else next(fresh)
        for part in range(len(new) - 1)
    ]
