"""Equation 7 for every number of queries, as tables for compiled code."""

import math
from fractions import Fraction

import numpy as np

from algorithms.placement.balance import exact
from algorithms.vocabulary import Ints


def thresholds(servers: int, nu: float, alpha: float, queries: int) -> Ints:
    """Return the least number of queries of each cap, int64[...]; equal servers.

    Entry c is the least n, counting the query that arrives, at which d(n) of equation 7 is at
    least c; the last entry is beyond `queries`. Computed in rationals, as `balance.online_caps`.
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


def alpha_from_epsilon(epsilon: float, servers: int, nu: float) -> float:
    """Return the absolute slack of section 5.2.2 for a chance of violation of at most epsilon.

    The switch from absolute to relative slack happens at n = alpha k / nu, and equation 10 asks
    for n >= k^2 log(1 / epsilon) / (2 nu^2) there, so alpha = k log(1 / epsilon) / (2 nu). (The
    union bound before it has log(k / epsilon); the paper drops the k, and so does this.) Raises
    `ValueError` outside 0 < epsilon < 1, nu > 0, k >= 1.
    """
    if not 0 < epsilon < 1 or not nu > 0 or servers < 1:
        raise ValueError("needs 0 < epsilon < 1, nu > 0 and at least one server")
    return servers * math.log(1 / epsilon) / (2 * nu)
