"""The query partition problem of section 2, as one frozen and checked value."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from algorithms.errors import Infeasible
from algorithms.placement import checks
from algorithms.placement.balance import relative_cap
from algorithms.placement.types import QueryTypes, collapse
from algorithms.vocabulary import Floats, Ints, SmallInts


@dataclass(frozen=True, eq=False)
class PlacementProblem:
    """Put every query on one server; a server receives each source its queries read, once.

    `rates` float64[m]: traffic of each source, in any one unit (records/s, bytes/s).
    `indptr` int64[n + 1], `indices` int32[...]: query q reads the sources
    `indices[indptr[q]:indptr[q + 1]]`, ascending and each once (compressed sparse rows).
    `servers`: k. `nu`: allowed slack, so that a server hosts at most floor((1 + nu) n / k).

    Build it with `from_lists` or `from_arrays`, which check, sort and copy their input.
    """

    rates: Floats
    indptr: Ints
    indices: SmallInts
    servers: int
    nu: float

    @classmethod
    def from_lists(
        cls,
        rates: Iterable[float],
        queries: Sequence[Iterable[int]],
        servers: int,
        nu: float,
    ) -> Self:
        """Build a problem from one collection of source numbers per query.

        Raises `BadProblem` that says which value is wrong and why.
        """
        rows = [list(query) for query in queries]
        indptr = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=indptr[1:])
        flat = checks.as_integers("queries", [source for row in rows for source in row])
        return cls.from_arrays(list(rates), indptr, flat, servers, nu)

    @classmethod
    def from_arrays(cls, rates: Any, indptr: Any, indices: Any, servers: int, nu: float) -> Self:
        """Build a problem from compressed sparse rows; a source named twice counts once.

        Raises `BadProblem` that says which value is wrong and why.
        """
        checked = checks.checked_rates(rates)
        rows = checks.checked_indptr(indptr)
        sources = checks.checked_sources(indices, rows, len(checked))
        checks.check_servers(servers)
        checks.check_nu(nu)
        rows, sources = _sorted_rows(rows, sources, len(checked))
        for array in (checked, rows, sources):
            array.setflags(write=False)
        return cls(checked, rows, sources, int(servers), float(nu))

    @property
    def queries(self) -> int:
        """Number of queries, n."""
        return len(self.indptr) - 1

    @property
    def capacity(self) -> int:
        """Most queries a server may host: floor((1 + nu) n / k), section 2."""
        return relative_cap(self.queries, self.servers, self.nu)

    def sources_of(self, query: int) -> SmallInts:
        """Return the sources that one query reads, ascending."""
        return self.indices[self.indptr[query] : self.indptr[query + 1]]

    def require_feasible(self) -> None:
        """Raise `Infeasible` when all servers together have fewer places than queries."""
        if self.servers * self.capacity < self.queries:
            raise Infeasible(self.queries, self.servers, self.capacity, self.nu)

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

    def lower_bound(self, cap: int) -> float:
        """Return traffic that no placement with at most `cap` queries per server undercuts.

        A source with r readers reaches at least ceil(r / cap) servers.
        """
        if cap < 1:
            return self.live_rate
        return math.fsum(self.rates * -(-self.readers // cap))


def _sorted_rows(indptr: Ints, indices: SmallInts, sources: int) -> tuple[Ints, SmallInts]:
    """Sort the sources within each query and drop repetitions."""
    queries = len(indptr) - 1
    owner = np.repeat(np.arange(queries, dtype=np.int64), np.diff(indptr))
    edges = np.unique(owner * max(sources, 1) + indices)
    owner, kept = np.divmod(edges, max(sources, 1))
    rows = np.zeros(queries + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=queries), out=rows[1:])
    return rows, kept.astype(np.int32)
