"""The balance constraints, exactly: how many queries one server may host.

Computed in rationals because `floor` of a rounded product loses a place now and then
(1.15 * 100 is 114.99999999999999 in binary).
"""

from fractions import Fraction
from functools import lru_cache


@lru_cache(maxsize=64)
def exact(number: float) -> Fraction:
    """Return the decimal number that was meant: 0.05 is 1/20."""
    return Fraction(repr(float(number)))


def relative_cap(queries: int, servers: int, nu: float) -> int:
    """Return the most queries a server may host: floor((1 + nu) n / k), section 2."""
    share = 1 + exact(nu)
    return queries * share.numerator // (servers * share.denominator)


def absolute_cap(queries: int, servers: int, alpha: float) -> int:
    """Return floor(n / k + alpha), section 5.2.2."""
    slack = exact(alpha)
    numerator = queries * slack.denominator + slack.numerator * servers
    return numerator // (servers * slack.denominator)


def online_cap(queries: int, servers: int, nu: float, alpha: float) -> int:
    """Return floor(max(n / k + alpha, (1 + nu) n / k)), equation 7.

    `queries` counts the query that arrives.
    """
    return max(absolute_cap(queries, servers, alpha), relative_cap(queries, servers, nu))


def even_cap(queries: int, servers: int) -> int:
    """Return ceil(n / k): the fullest server when queries are spread as evenly as can be."""
    return -(-queries // servers)
