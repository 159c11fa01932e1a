"""The limit of a node's work: definition 3.1, and by share on nodes of unequal capacity."""

import numpy as np

from algorithms.vocabulary import Floats

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
