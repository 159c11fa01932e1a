"""What an online placement algorithm knows of a cluster: which server hosts which queries."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from algorithms.errors import BadProblem
from algorithms.placement import checks
from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import Floats, Ints, SmallInts


class OnlineState:
    """Live queries per server and source; a value that copies, compares and pickles.

    `rates` float64[m]; `counts` int32[k, m]: live queries on a server that read a source;
    `loads` int64[k]: live queries; `traffic` float64[k]: f(Q_j); `kinds`: per query type, live
    queries on each server, int32[k] (only kept with `with_kinds`); `arrivals`: queries ever added.
    """

    def __init__(self, servers: int, rates: Any, *, with_kinds: bool = False) -> None:
        checks.check_servers(servers)
        self.rates: Floats = checks.checked_rates(rates)
        self.counts: SmallInts = np.zeros((servers, len(self.rates)), np.int32)
        self.loads: Ints = np.zeros(servers, np.int64)
        self.traffic: Floats = np.zeros(servers)
        self.kinds: dict[tuple[int, ...], SmallInts] | None = {} if with_kinds else None
        self.kind_totals: Ints = np.zeros(servers, np.int64)
        self.arrivals = 0

    @classmethod
    def from_assignment(
        cls, problem: PlacementProblem, assignment: Sequence[int], *, with_kinds: bool = False
    ) -> Self:
        """Return the state in which query q of `problem` lives on server `assignment[q]`.

        Raises `BadProblem` on a server that does not exist or a wrong number of assignments.
        """
        servers = checks.as_integers("assignment", assignment)
        _check_assignment(problem, servers)
        state = cls(problem.servers, problem.rates, with_kinds=with_kinds)
        owner = np.repeat(servers, np.diff(problem.indptr))
        cells = owner * len(problem.rates) + problem.indices
        counts = np.bincount(cells, minlength=state.counts.size)
        state.counts = counts.astype(np.int32).reshape(state.counts.shape)
        state.loads = np.bincount(servers, minlength=problem.servers).astype(np.int64)
        state.traffic = (state.counts > 0) @ state.rates
        state.arrivals = problem.queries
        if state.kinds is not None:
            for query, server in enumerate(servers.tolist()):
                state._count_kind(problem.sources_of(query), server, 1)
        return state

    @property
    def servers(self) -> int:
        """Number of servers, k."""
        return len(self.loads)

    @property
    def live(self) -> int:
        """Number of live queries, n."""
        return int(self.loads.sum())

    def sources(self, sources: Iterable[int]) -> Ints:
        """Return a query's sources as a sorted vector without repetitions.

        Raises `BadProblem` when there are none or one is unknown.
        """
        wanted = np.unique(checks.as_integers("sources", list(sources)))
        if not len(wanted):
            raise BadProblem("sources", "reads no source")
        if wanted[0] < 0 or wanted[-1] >= len(self.rates):
            wrong = wanted[0] if wanted[0] < 0 else wanted[-1]
            raise BadProblem("sources", f"source {wrong} is unknown (0 to {len(self.rates) - 1})")
        return wanted

    def added_rate(self, sources: Ints) -> Floats:
        """Return, for each server, the rate that a query on these sources would add, float64[k]."""
        added: Floats = np.where(self.counts[:, sources] == 0, self.rates[sources], 0.0).sum(axis=1)
        return added

    def add(self, sources: Ints, server: int) -> None:
        """Count one more live query on a server."""
        self.traffic[server] += self.added_rate(sources)[server]
        self.counts[server, sources] += 1
        self.loads[server] += 1
        self.arrivals += 1
        self._count_kind(sources, server, 1)

    def remove(self, sources: Iterable[int], server: int) -> None:
        """Forget a live query of a server.

        Raises `BadProblem` when the server hosts no query that reads all these sources.
        """
        leaving = self.sources(sources)
        if not 0 <= server < self.servers:
            raise BadProblem("server", f"{server} is unknown (0 to {self.servers - 1})")
        if self.loads[server] == 0 or (self.counts[server, leaving] == 0).any():
            raise BadProblem("server", f"{server} hosts no query on sources {leaving.tolist()}")
        self._count_kind(leaving, server, -1)
        self.counts[server, leaving] -= 1
        self.loads[server] -= 1
        # Summed anew: differences of floats would drift over months of churn.
        self.traffic[server] = self.rates[self.counts[server] > 0].sum()

    def copy(self) -> "OnlineState":
        """Return a state that changes on its own."""
        other = OnlineState(self.servers, self.rates, with_kinds=self.kinds is not None)
        other.counts, other.loads = self.counts.copy(), self.loads.copy()
        other.traffic, other.arrivals = self.traffic.copy(), self.arrivals
        if self.kinds is not None:
            other.kinds = {kind: counts.copy() for kind, counts in self.kinds.items()}
            other.kind_totals = self.kind_totals.copy()
        return other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OnlineState):
            return NotImplemented
        return (
            np.array_equal(self.rates, other.rates)
            and np.array_equal(self.counts, other.counts)
            and np.array_equal(self.loads, other.loads)
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    def kinds_with(self, sources: Ints) -> Ints:
        """Return how many query types each server would host with a query on these, int64[k].

        Raises `ValueError` on a state that does not keep the types.
        """
        if self.kinds is None:
            raise ValueError("this state was made without query types (with_kinds)")
        counts = self.kinds.get(tuple(sources.tolist()))
        return self.kind_totals + (1 if counts is None else counts == 0)

    def _count_kind(self, sources: Ints | SmallInts, server: int, change: int) -> None:
        if self.kinds is None:
            return
        kind = tuple(sources.tolist())
        if kind not in self.kinds:
            self.kinds[kind] = np.zeros(self.servers, np.int32)
        counts = self.kinds[kind]
        had = counts[server] > 0
        counts[server] += change
        self.kind_totals[server] += int(counts[server] > 0) - int(had)
        if not counts.any():
            del self.kinds[kind]


def _check_assignment(problem: PlacementProblem, servers: Ints) -> None:
    if len(servers) != problem.queries:
        why = f"names {len(servers)} servers for {problem.queries} queries"
        raise BadProblem("assignment", why)
    wrong = np.flatnonzero((servers < 0) | (servers >= problem.servers))
    if len(wrong):
        first = int(wrong[0])
        why = f"server {servers[first]} is unknown (0 to {problem.servers - 1})"
        raise BadProblem(f"assignment[{first}]", why)
