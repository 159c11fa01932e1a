"""Traffic to compare with: lower bounds of all placements, and the mean of random ones."""

import math
from typing import TYPE_CHECKING

import numpy as np

from algorithms.compiled import compiled
from algorithms.vocabulary import Floats, Ints, SmallInts

if TYPE_CHECKING:
    from algorithms.placement.problem import PlacementProblem


def cover_bound(problem: "PlacementProblem", caps: Ints) -> float:
    """Return the bound of each source alone: a source reaches as many servers as hold its readers.

    With equal caps C that is ceil(r / C) for r readers; else as many of the largest servers.
    """
    if not problem.queries or int(caps.sum()) < problem.queries:
        return problem.live_rate
    places = np.cumsum(np.sort(caps)[::-1])
    servers = np.searchsorted(places, problem.readers, side="left") + 1
    return math.fsum(problem.rates * np.where(problem.readers > 0, servers, 0))


# The bound skips more pairs of sources than this: they take seconds.
_MOST_PAIRS = 2_000_000
# Rounding must not raise the bound.
_SAFE = 1 - 1e-12


def pair_bound(problem: "PlacementProblem", caps: Ints) -> float:
    """Return the bound of sources in pairs: two popular ones crowd each other out of a server.

    A query's share in delivering source s to its server is w(s) / x_s, with x_s the queries there
    that read s; summed over the queries these are the traffic. x_s is at most C and at most s's
    readers, and for two sources of the query x_a + x_b is at most C and those that read both. So
    each pair has a least share, and a query of d sources the sum over its pairs over d - 1.
    """
    types = problem.types
    widths = np.diff(types.indptr)
    if not problem.queries or int((widths * (widths - 1) // 2).sum()) > _MOST_PAIRS:
        return 0.0
    most = np.minimum(problem.readers, caps.max()).astype(np.float64)
    pairs = _pairs(types.indptr, types.indices, len(problem.rates))
    distinct, position = np.unique(pairs, return_inverse=True)
    owner = np.repeat(np.arange(len(types)), widths * (widths - 1) // 2)
    together = np.bincount(position, types.sizes[owner], len(distinct))[position]
    first, second = np.divmod(pairs, max(len(problem.rates), 1))
    shares = _least_share(problem.rates, most, first, second, caps.max() + together)
    weights = types.sizes[owner] / np.maximum(widths[owner] - 1, 1)
    single = widths == 1
    lone = types.indices[types.indptr[:-1][single]]
    rest = types.sizes[single] * problem.rates[lone] / most[lone]
    return float((shares * weights).sum() + rest.sum()) * _SAFE


@compiled
def _pairs(indptr: Ints, indices: SmallInts, sources: int) -> Ints:
    """Return all pairs of sources of each type, as first * m + second, types in turn."""
    count = 0
    for kind in range(len(indptr) - 1):
        width = indptr[kind + 1] - indptr[kind]
        count += width * (width - 1) // 2
    pairs = np.empty(count, np.int64)
    filled = 0
    for kind in range(len(indptr) - 1):
        for entry in range(indptr[kind], indptr[kind + 1]):
            for other in range(entry + 1, indptr[kind + 1]):
                pairs[filled] = np.int64(indices[entry]) * sources + indices[other]
                filled += 1
    return pairs


def _least_share(rates: Floats, most: Floats, first: Ints, second: Ints, limit: Floats) -> Floats:
    """Return the least of w_a / x_a + w_b / x_b over x_a + x_b <= limit, each x up to its most.

    Where both can have their most, there; else on the line, at the square roots of the rates or
    at the end of it that is next.
    """
    a, b = most[first], most[second]
    low, high = np.maximum(limit - b, 0.0), np.minimum(a, limit)
    roots = np.sqrt(rates[first]), np.sqrt(rates[second])
    total = roots[0] + roots[1]
    best = np.where(total > 0, limit * roots[0] / np.where(total > 0, total, 1.0), low)
    first_share = np.where(a + b <= limit, a, np.clip(best, low, high))
    beside = np.where(a + b <= limit, b, limit - first_share)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = [
            np.where(rates[source] > 0, rates[source] / queries, 0.0)
            for source, queries in ((first, first_share), (second, beside))
        ]
    smallest: Floats = shares[0] + shares[1]
    return smallest
