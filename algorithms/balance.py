"""The imbalance: one definition for plans, measurements and algorithms."""

from algorithms.vocabulary import Floats


def imbalance(shares: Floats) -> float:
    """Return the largest load/capacity minus the mean; 0 without any.

    `shares` float64[n]: load/capacity of nodes, tasks or workers. Hot loops call it in compiled
    form (`algorithms.compiled`).
    """
    return float(shares.max() - shares.mean()) if shares.size else 0.0
