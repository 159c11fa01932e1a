"""Synthetic placement instances of section 6.1: Zipf popularity, fixed sources per query."""

import numpy as np

from algorithms.placement.problem import PlacementProblem


def zipf_instance(
    *,
    queries: int = 100_000,
    sources: int = 10_000,
    sources_per_query: int = 2,
    servers: int = 100,
    exponent: float = 2.0,
    nu: float = 0.05,
    seed: int = 0,
) -> PlacementProblem:
    """Return an instance with unit rates; the paper leaves the number of sources open.

    The degree of the source of rank r is proportional to r ** -exponent. A query draws its
    sources one by one, each among those it does not have yet.
    """
    draw = np.random.default_rng(seed)
    weights = np.arange(1, sources + 1) ** -exponent
    edges = distinct_draws(draw, weights / weights.sum(), queries, sources_per_query)
    indptr = np.arange(queries + 1) * sources_per_query
    return PlacementProblem.from_arrays(np.ones(sources), indptr, edges.ravel(), servers, nu)


def distinct_draws(
    draw: np.random.Generator, shares: np.ndarray, rows: int, width: int
) -> np.ndarray:
    """Return int64[rows, width]: per row, numbers drawn by `shares` without repetition."""
    edges = draw.choice(len(shares), size=(rows, width), p=shares)
    for column in range(1, width):
        again = np.flatnonzero((edges[:, :column] == edges[:, column, None]).any(axis=1))
        while len(again):
            edges[again, column] = draw.choice(len(shares), size=len(again), p=shares)
            taken = (edges[again, :column] == edges[again, column, None]).any(axis=1)
            again = again[taken]
    return edges
