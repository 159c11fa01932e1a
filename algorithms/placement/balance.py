"""The balance constraints, exactly: how many queries one server may host.

Computed in rationals because `floor` of a rounded product loses a place now and then
(1.15 * 100 is 114.99999999999999 in binary).
"""

import heapq
import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from algorithms.vocabulary import Floats, Ints

# No problem has more; the cap of an enormous slack would overflow 64 bits.
_MOST_QUERIES = 2**31


@lru_cache(maxsize=64)
def exact(number: float) -> Fraction:
    """Return the decimal number as written: 0.05 is 1/20."""
    return Fraction(repr(float(number)))


def shares(capacities: Floats) -> list[Fraction]:
    """Return each server's part of the sum of all capacities, exactly."""
    sizes = [exact(capacity) for capacity in capacities.tolist()]
    total = sum(sizes)
    return [size / total for size in sizes]


def _places(bound: Fraction) -> int:
    return min(math.floor(bound), _MOST_QUERIES)


def relative_caps(queries: int, capacities: Floats, nu: float, *, round_up: bool = False) -> Ints:
    """Return the most queries each server may host, int64[k].

    floor((1 + nu) n / k), section 2; where capacities differ, a server's share of their sum
    takes the place of 1 / k. With `round_up` at least ceil(n / k), so that all queries fit.
    """
    scale = (1 + exact(nu)) * queries
    parts = shares(capacities)
    caps = [_places(scale * share) for share in parts]
    if round_up:
        caps = [
            max(cap, math.ceil(queries * share)) for cap, share in zip(caps, parts, strict=True)
        ]
    return np.array(caps, np.int64)


def smallest_slack(queries: int, capacities: Floats) -> float:
    """Return the least nu at which the caps of `relative_caps` have room for all queries.

    A server has one place more whenever (1 + nu) n times its share reaches the next integer, so
    the sum of the caps reaches n at one of these points. At most k - 1 places are missing at
    nu = 0. Rounded up to the next double where the exact number is none.
    """
    parts = shares(capacities)
    places = [math.floor(queries * share) for share in parts]
    missing = queries - sum(places)
    if missing <= 0:
        return 0.0
    steps = [
        ((cap + 1) / share, cap, index)
        for index, (cap, share) in enumerate(zip(places, parts, strict=True))
    ]
    heapq.heapify(steps)
    scale = Fraction(queries)
    for _ in range(missing):
        scale, cap, index = steps[0]
        heapq.heapreplace(steps, ((cap + 2) / parts[index], cap + 1, index))
    return _rounded_up(scale / queries - 1)


def _rounded_up(number: Fraction) -> float:
    """Return the least double whose decimal form is not below the number."""
    nearest = float(number)
    while exact(nearest) < number:
        nearest = math.nextafter(nearest, math.inf)
    return nearest


def online_caps(queries: int, capacities: Floats, nu: float, alpha: float) -> Ints:
    """Return floor(max(n / k + alpha, (1 + nu) n / k)), equation 7, for each server, int64[k].

    `queries` counts the query that arrives. Where capacities differ, the bound of a server is in
    proportion to its share.
    """
    servers = len(capacities)
    bound = max(queries + servers * exact(alpha), (1 + exact(nu)) * queries)
    return np.array([_places(bound * share) for share in shares(capacities)], np.int64)


def even_caps(queries: int, capacities: Floats) -> Ints:
    """Return the most queries per server if arrivals always go to the least loaded, int64[k].

    Least loaded means least (load + 1) / capacity; with equal servers this is ceil(n / k).
    """
    most = queries + len(capacities) - 1
    return np.array([math.floor(most * share) for share in shares(capacities)], np.int64)


def thresholds(servers: int, nu: float, alpha: float, queries: int) -> Ints:
    """Return the least number of queries of each cap, int64[...]; equal servers.

    Entry c is the least n, counting the query that arrives, at which d(n) of equation 7 is at
    least c; the last entry is beyond `queries`. Computed in rationals, as `online_caps`.
    """
    relative, absolute = 1 + exact(nu), exact(alpha)
    largest = math.floor(max(Fraction(queries, servers) + absolute, relative * queries / servers))
    # n / k + alpha >= c, or (1 + nu) n / k >= c: whichever happens first.
    caps = range(min(largest, queries) + 2)
    top, bottom = relative.denominator * servers, relative.numerator
    shift = absolute * servers
    up, down = shift.numerator, shift.denominator
    firsts = [
        min(-(-cap * top // bottom), max(0, -((up - cap * servers * down) // down))) for cap in caps
    ]
    return np.array(firsts, np.int64)
