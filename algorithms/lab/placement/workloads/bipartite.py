"""Random bipartite graphs with given degrees, after Guillaume and Latapy [16], section 6.1.

Sources get Zipf degrees, all queries the same degree; edges join them at random.
"""

import numpy as np

from algorithms.compiled import compiled
from algorithms.errors import BadParameters
from algorithms.lab.placement.workloads.subscriptions import Subscriptions, fixed_width
from algorithms.vocabulary import Ints, Seed, SmallInts

# The paper does not name a largest degree. Among those tried this one fits its text best.
LARGEST_DEGREE = 1_000


def bipartite(
    queries: int,
    sources_per_query: int,
    exponent: float,
    seed: Seed,
    largest_degree: int | None = LARGEST_DEGREE,
) -> Subscriptions:
    """Return `queries` rows of `sources_per_query` distinct sources, whose popularity is Zipf.

    The number of sources follows from the degrees; every source has a reader. `largest_degree`
    None or 0 leaves the degree of a source bounded by the number of queries alone.

    Raises `BadParameters` on counts below 1 (or a negative largest degree).
    """
    _check(queries, sources_per_query, largest_degree)
    draw = np.random.default_rng(seed)
    largest = min(largest_degree or queries, queries)
    degrees = zipf_degrees(queries * sources_per_query, exponent, largest, draw)
    ends = np.repeat(np.arange(len(degrees), dtype=np.int32), degrees)
    rows = draw.permutation(ends).reshape(queries, sources_per_query)
    part_repeated(rows, draw)
    return fixed_width(rows, len(degrees))


def zipf_degrees(edges: int, exponent: float, largest: int, draw: np.random.Generator) -> Ints:
    """Return degrees that sum to `edges`, int64[m]; the last one is cut to fit.

    Each is r in 1..largest with probability proportional to r ** -exponent.
    """
    ranks = np.arange(1.0, largest + 1)
    cumulated = np.cumsum(ranks**-exponent)
    mean = float(np.diff(cumulated, prepend=0.0) @ ranks / cumulated[-1])
    drawn = np.empty(0, np.int64)
    while (missing := edges - int(drawn.sum())) > 0:
        more = draw.random(int(missing / mean * 1.01) + 16) * cumulated[-1]
        degrees_drawn = np.searchsorted(cumulated, more, side="right") + 1
        drawn = np.concatenate([drawn, np.minimum(degrees_drawn, largest)])
    totals = np.cumsum(drawn)
    last = int(np.searchsorted(totals, edges))
    degrees = drawn[: last + 1]
    degrees[last] -= totals[last] - edges
    return degrees


@compiled
def part_repeated(rows: SmallInts, draw: np.random.Generator) -> None:
    """Swap ends between `rows` int32[n, d], in place, until no row names a source twice.

    A repeated source s of row q changes places with a source t of another row. s must be new
    there and t either new in q or repeated in its own row, so every swap leaves fewer
    repetitions. As long as no source has more than n ends, some row lacks s and offers such a
    t: a scan from a random start finds it, and degrees do not change.
    """
    queries, width = rows.shape
    ends = queries * width
    for query in range(queries):
        column = 1
        while column < width:
            if _count(rows, query, rows[query, column]) == 1:
                column += 1
                continue
            start = int(draw.random() * ends)
            for step in range(ends):
                other, place = divmod((start + step) % ends, width)
                if _may_swap(rows, query, column, other, place):
                    rows[query, column], rows[other, place] = (
                        rows[other, place],
                        rows[query, column],
                    )
                    break
            # Look again: the new source may be a repetition, too.


@compiled
def _may_swap(rows: SmallInts, query: int, column: int, other: int, place: int) -> bool:
    coming = rows[other, place]
    if _count(rows, other, rows[query, column]) > 0:
        return False
    return _count(rows, query, coming) == 0 or _count(rows, other, coming) > 1


@compiled
def _count(rows: SmallInts, query: int, source: int) -> int:
    count = 0
    for column in range(rows.shape[1]):
        if rows[query, column] == source:
            count += 1
    return count


def _check(queries: int, sources_per_query: int, largest_degree: int | None) -> None:
    faults = {
        name: [f"must be at least {least}, not {value}"]
        for name, value, least in (
            ("queries", queries, 1),
            ("sources_per_query", sources_per_query, 1),
            ("largest_degree", largest_degree or 0, 0),
        )
        if value < least
    }
    if faults:
        raise BadParameters(faults)
