"""Which node has which interval, once the partitioning is decided; equal nodes."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from algorithms.vocabulary import Floats, Ints


def named(kept: Floats, old: Ints, names: Sequence[int], new: Ints) -> list[int]:
    """Return the node of each new interval, so that the most bytes stay.

    `kept` float64[m + 1]: bytes before each position. `names`: the nodes of the old intervals.
    An interval that nobody keeps goes to the lowest of the other old nodes, then to new ones,
    numbered on from the highest.
    """
    low = np.maximum(old[:-1, None], new[None, :-1])
    high = np.minimum(old[1:, None], new[None, 1:])
    stays = np.where(high > low, kept[high] - kept[np.minimum(low, high)], 0.0)
    rows, columns = linear_sum_assignment(stays, maximize=True)
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
