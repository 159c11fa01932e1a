"""The query partition problem of section 2, as one frozen and checked value, with its bounds."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final, Self

import numpy as np

from algorithms.checks import as_integers, check_slack
from algorithms.compiled import compiled
from algorithms.errors import Infeasible
from algorithms.placement import checks
from algorithms.placement.balance import relative_caps, smallest_slack
from algorithms.placement.types import QueryTypes, collapse
from algorithms.rows import boundaries, normalise_rows
from algorithms.vocabulary import MAX_SLACK, Floats, Ints, SmallInts, parameter

# More than a server of the largest problem may hold.
MAX_ALPHA: Final = 1e7


def relative_slack() -> Any:
    """Declare the parameter nu, the relative slack."""
    text = "Relative slack: a server hosts at most (1 + nu) times the mean load."
    return parameter(
        0.05, title="Uneven load allowed", letter="nu", help=text, minimum=0.0, maximum=MAX_SLACK
    )


@dataclass(frozen=True, eq=False)
class PlacementProblem:
    """Put every query on one server; a server receives each source its queries read, once.

    `rates` float64[m]: traffic of each source, in any one unit (records/s, bytes/s).
    `indptr` int64[n + 1], `indices` int32[...]: query q reads the sources
    `indices[indptr[q]:indptr[q + 1]]`, ascending and each once (compressed sparse rows).
    `servers`: k. `nu`: allowed slack. `capacities` float64[k]: how large each server is relative
    to the others, in any unit; all 1 where servers are equal, as in the paper. `round_up`: whether
    a cap is at least the server's share of the queries, rounded up. The paper's caps, which are
    rounded down, may have fewer places than there are queries where these are few.

    Build it with `from_lists` or `from_arrays`, which check, sort and copy their input.
    """

    rates: Floats
    indptr: Ints
    indices: SmallInts
    servers: int
    nu: float
    capacities: Floats
    round_up: bool = False

    @classmethod
    def from_lists(
        cls,
        rates: Iterable[float],
        queries: Sequence[Iterable[int]],
        servers: int,
        nu: float,
        capacities: Iterable[float] | None = None,
        *,
        round_up: bool = False,
    ) -> Self:
        """Build a problem from one collection of source numbers per query.

        Raises `BadProblem`, which names the wrong value and why.
        """
        rows = [query if isinstance(query, list | tuple) else list(query) for query in queries]
        indptr = boundaries(np.fromiter(map(len, rows), np.int64, len(rows)))
        flat = as_integers("queries", list(chain.from_iterable(rows)))
        sizes = None if capacities is None else list(capacities)
        return cls.from_arrays(list(rates), indptr, flat, servers, nu, sizes, round_up=round_up)

    @classmethod
    def from_arrays(
        cls,
        rates: Any,
        indptr: Any,
        indices: Any,
        servers: int,
        nu: float,
        capacities: Any = None,
        *,
        round_up: bool = False,
    ) -> Self:
        """Build a problem from compressed sparse rows; a source named twice counts once.

        Servers are equal where no `capacities` are given.

        Raises `BadProblem`, which names the wrong value and why.
        """
        checked = checks.checked_rates(rates)
        rows = checks.checked_indptr(indptr)
        sources = checks.checked_sources(indices, rows, len(checked))
        checks.check_servers(servers)
        check_slack("nu", nu)
        sizes = checks.checked_capacities(capacities, servers)
        rows, sources = normalise_rows(rows, sources)
        for array in (checked, rows, sources, sizes):
            array.setflags(write=False)
        return cls(checked, rows, sources, int(servers), float(nu), sizes, round_up)

    @property
    def queries(self) -> int:
        """Number of queries, n."""
        return len(self.indptr) - 1

    @property
    def equal_servers(self) -> bool:
        """Whether all servers have the same capacity, as the paper assumes."""
        return bool((self.capacities == self.capacities[0]).all())

    @cached_property
    def caps(self) -> Ints:
        """Most queries each server may host, int64[k].

        floor((1 + nu) n / k) as in section 2; where capacities differ, each server's share of
        their sum takes the place of 1 / k. With `round_up` at least the share itself, rounded up.
        """
        return relative_caps(self.queries, self.capacities, self.nu, round_up=self.round_up)

    def sources_of(self, query: int) -> SmallInts:
        """Return the sources that one query reads, ascending."""
        return self.indices[self.indptr[query] : self.indptr[query + 1]]

    def require_feasible(self) -> None:
        """Raise `Infeasible` when all servers together have fewer places than queries.

        Never with `round_up`.
        """
        if int(self.caps.sum()) < self.queries:
            smallest = smallest_slack(self.queries, self.capacities)
            raise Infeasible(self.queries, self.caps.tolist(), self.nu, smallest)

    @cached_property
    def readers(self) -> Ints:
        """How many queries read each source, int64[m]: |N(s)|."""
        return np.bincount(self.indices, minlength=len(self.rates)).astype(np.int64)

    @cached_property
    def live_rate(self) -> float:
        """Summed rate of the sources that at least one query reads."""
        return math.fsum(self.rates[self.readers > 0])

    @cached_property
    def types(self) -> QueryTypes:
        """The queries collapsed by source set, in order of first appearance."""
        return collapse(self.indptr, self.indices)

    def lower_bound(self, caps: Ints) -> float:
        """Return a lower bound of the traffic with at most `caps[j]` queries per server."""
        return max(cover_bound(self, caps), pair_bound(self, caps))


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
