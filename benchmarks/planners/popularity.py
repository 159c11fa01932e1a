"""A fixed set of sources, drawn by rank: popularity itself follows a Zipf law."""

import numpy as np

from algorithms.errors import BadParameters
from algorithms.lab.placement.workloads.subscriptions import Subscriptions, fixed_width
from algorithms.vocabulary import Floats, Ints, Seed


def popularity_zipf(
    queries: int, sources: int, sources_per_query: int, exponent: float, seed: Seed
) -> Subscriptions:
    """Return queries that draw `sources_per_query` of `sources` sources by popularity.

    The source of rank r is drawn with a share proportional to r ** -exponent. A query draws its
    sources one by one, each among those it does not have yet. Sources may stay without readers.

    Raises `BadParameters` if a query needs more sources than exist.
    """
    if not 1 <= sources_per_query <= sources:
        why = f"must be 1 to {sources}, the number of sources, not {sources_per_query}"
        raise BadParameters({"sources_per_query": [why]})
    draw = np.random.default_rng(seed)
    weights = np.arange(1.0, sources + 1) ** -exponent
    rows = distinct_draws(draw, weights / weights.sum(), queries, sources_per_query)
    return fixed_width(rows.astype(np.int32), sources)


def distinct_draws(draw: np.random.Generator, shares: Floats, rows: int, width: int) -> Ints:
    """Return int64[rows, width]: per row, numbers drawn by `shares` without repetition."""
    edges = draw.choice(len(shares), size=(rows, width), p=shares)
    for column in range(1, width):
        again = np.flatnonzero((edges[:, :column] == edges[:, column, None]).any(axis=1))
        while len(again):
            edges[again, column] = draw.choice(len(shares), size=len(again), p=shares)
            taken = (edges[again, :column] == edges[again, column, None]).any(axis=1)
            again = again[taken]
    return edges
