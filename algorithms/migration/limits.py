"""The limit of a node's work, definition 3.1, and the intervals of tasks within it."""

import numpy as np

from algorithms.compiled import compiled
from algorithms.vocabulary import Floats, Ints

# Work is summed as floats: a load this close above its limit is within it.
TOLERANCE = 1e-9


def node_limits(total: float, nodes: int, tau: float, capacities: Floats) -> Floats:
    """Return (1 + tau) times each node's share of the work, float64[len(capacities)].

    A node of capacity 0 must leave and may do none. Equal nodes share evenly among `nodes`,
    whichever they are.
    """
    positive = capacities[capacities > 0]
    if len(positive) == nodes:
        share = capacities / positive.sum()
    else:
        share = np.full(len(capacities), 1.0 / nodes)
    return np.asarray((1.0 + tau) * total * share)


def is_within(load: float, limit: float) -> bool:
    """Return whether a load keeps its limit, up to rounding."""
    return load <= limit * (1.0 + TOLERANCE)


@compiled
def lower_bounds(work_before: Floats, limit: float) -> Ints:
    """Return the least l for which the tasks [l, x) keep the limit, for each x, int64[m + 1].

    It is x itself where the task before x alone is above the limit.
    """
    lowest = np.empty(len(work_before), np.int64)
    allowed = limit * (1.0 + TOLERANCE)
    low = 0
    for x in range(len(work_before)):
        while work_before[x] - work_before[low] > allowed:
            low += 1
        lowest[x] = low
    return lowest


@compiled
def owners_of(bounds: Ints, tasks: int) -> Ints:
    """Return the present node of each task; for the end, one past the last node."""
    return np.searchsorted(bounds[1:], np.arange(tasks + 1), side="right")
