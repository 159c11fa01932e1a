"""The query partition problem of section 2, as one frozen and checked value."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final, Self

import numpy as np

from algorithms.checks import as_integers, check_slack
from algorithms.errors import Infeasible
from algorithms.placement import checks
from algorithms.placement.balance import relative_caps, smallest_slack
from algorithms.placement.bounds import cover_bound, pair_bound
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
