"""The online algorithms: each query is placed when it arrives and stays, section 5.

All share the pipeline of Figure 2: the servers that keep the balance constraint, of those the
ones of the best metric, of those the least loaded, of those the lowest number. The parameters are
in the algorithm, what is known of the cluster is in an `OnlineState`.
"""

import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from algorithms.placement.balance import even_caps, online_caps
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.result import PlacementPlan, measured
from algorithms.placement.state import OnlineState
from algorithms.vocabulary import Floats, Ints, Parameters, Progress, SmallInts, parameter

# Arrivals between two reports of progress: some ten milliseconds.
_ARRIVALS_PER_REPORT = 1_000


@dataclass(frozen=True)
class OnlinePlacement(Parameters):
    """The pipeline of Figure 2; a subclass says which server is best."""

    needs_kinds: ClassVar[bool] = False

    nu: float = parameter(
        0.05,
        unit="",
        help="Relative slack: a server hosts at most (1 + nu) times the mean load.",
        minimum=0.0,
    )
    alpha: float = parameter(
        10.0,
        unit="queries",
        help="Absolute slack: a server may exceed the mean load by alpha, which rules while the "
        "cluster hosts few queries.",
        minimum=0.0,
    )

    @abstractmethod
    def penalties(self, state: OnlineState, sources: Ints) -> NDArray[Any]:
        """Return a number per server, the smaller the better: the inverse of the metric M."""

    def empty_state(self, servers: int, rates: Any) -> OnlineState:
        """Return the state of a cluster without queries."""
        return OnlineState(servers, rates, with_kinds=self.needs_kinds)

    def state_from(self, problem: PlacementProblem, assignment: Sequence[int]) -> OnlineState:
        """Return the state of a cluster in which query q lives on server `assignment[q]`."""
        return OnlineState.from_assignment(problem, assignment, with_kinds=self.needs_kinds)

    def caps(self, queries: int, capacities: Floats) -> Ints:
        """Return floor of d(n), equation 7, per server; `queries` counts the one that arrives."""
        return online_caps(queries, capacities, self.nu, self.alpha)

    def promised_caps(self, problem: PlacementProblem) -> Ints:
        """Return the most queries each server may host once all of `problem` has arrived.

        Where no server is within d(n), which takes alpha < 1 or departures, the least loaded is
        taken; while queries only arrive it then holds no more than the even share.
        """
        queries, capacities = problem.queries, problem.capacities
        return np.maximum(self.caps(queries, capacities), even_caps(queries, capacities))

    def choose(self, state: OnlineState, sources: Iterable[int]) -> int:
        """Return the server for an arriving query and leave the state as it is.

        Raises `BadProblem` when the query reads nothing or an unknown source.
        """
        return self._best(state, state.sources(sources))

    def place(self, state: OnlineState, sources: Iterable[int]) -> int:
        """Return the server for an arriving query, and count the query in the state."""
        wanted = state.sources(sources)
        server = self._best(state, wanted)
        state.add(wanted, server)
        return server

    def solve(self, problem: PlacementProblem, progress: Progress | None = None) -> PlacementPlan:
        """Place the queries of `problem` one after the other, as if each were the last.

        The problem's own slack plays no part: the parameters' does.
        """
        started = time.perf_counter()
        assignment = self._placed_in_turn(problem, progress)
        caps = self.promised_caps(problem)
        return measured(problem, assignment, caps, time.perf_counter() - started)

    def _placed_in_turn(self, problem: PlacementProblem, progress: Progress | None) -> SmallInts:
        state = self.empty_state(problem.servers, problem.rates)
        assignment = np.empty(problem.queries, np.int32)
        for query in range(problem.queries):
            wanted = problem.sources_of(query).astype(np.int64)
            assignment[query] = self._best(state, wanted)
            state.add(wanted, int(assignment[query]))
            if progress is not None and query % _ARRIVALS_PER_REPORT == 0:
                progress(query / problem.queries)
        if progress is not None:
            progress(1.0)
        return assignment

    def _best(self, state: OnlineState, sources: Ints) -> int:
        caps = self.caps(state.live + 1, np.ones(state.servers))
        candidates = np.flatnonzero(state.loads + 1 <= caps)
        if not len(candidates):
            return int(np.argmin(state.loads))
        penalties = self.penalties(state, sources)[candidates]
        best = candidates[penalties == penalties.min()]
        return int(best[np.argmin(state.loads[best])])


@dataclass(frozen=True)
class LeastCost(OnlinePlacement):
    """Least incremental cost first, section 5.1: the server to which the query adds least."""

    def penalties(self, state: OnlineState, sources: Ints) -> NDArray[Any]:
        """Return f(Q_j with q) - f(Q_j) of each server."""
        return state.added_rate(sources)


@dataclass(frozen=True)
class LeastSource(OnlinePlacement):
    """Least source cost per server first, section 5.1: the server with least traffic then."""

    def penalties(self, state: OnlineState, sources: Ints) -> NDArray[Any]:
        """Return f(Q_j with q) of each server."""
        return state.traffic + state.added_rate(sources)


@dataclass(frozen=True)
class LeastQueryTypes(OnlinePlacement):
    """Least number of query types first (LeastQT), section 5.1."""

    needs_kinds: ClassVar[bool] = True

    def penalties(self, state: OnlineState, sources: Ints) -> NDArray[Any]:
        """Return the number of query types of each server with q."""
        return state.kinds_with(sources)


@dataclass(frozen=True)
class OnRand(OnlinePlacement):
    """Random baseline, section 6.1: any server that keeps the balance constraint."""

    seed: int = parameter(0, unit="", help="Same seed, same arrivals, same servers.", minimum=0)

    def penalties(self, state: OnlineState, sources: Ints) -> NDArray[Any]:
        """Return random numbers that depend on the seed and on how many queries came before."""
        draw = np.random.Generator(np.random.Philox(key=[self.seed, state.arrivals]))
        return draw.random(state.servers)
