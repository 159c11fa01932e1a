"""The pipeline of Figure 2 that all online algorithms share.

The servers that keep the balance constraint, of those the ones of the best metric, of those the
least loaded, of those the lowest number. The parameters are in the algorithm, the state of
the cluster is in an `OnlineState`.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from algorithms.placement.balance import even_caps, online_caps
from algorithms.placement.online.replay import apply_events, take_all_by_cost
from algorithms.placement.online.server_choice import LEAST_COST, LEAST_COST_RARE
from algorithms.placement.online.state import OnlineState
from algorithms.placement.problem import MAX_ALPHA, PlacementProblem, relative_slack
from algorithms.placement.result import PlacementPlan, measure
from algorithms.vocabulary import Ints, Parameters, Progress, SmallInts, parameter, silent

# Arrivals between two reports of progress: some ten milliseconds.
_ARRIVALS_PER_REPORT = 10_000


@dataclass(frozen=True)
class OnlinePlacement(Parameters):
    """The pipeline of Figure 2; a subclass chooses the best server."""

    needs_kinds: ClassVar[bool] = False
    metric: ClassVar[int] = LEAST_COST

    nu: float = relative_slack()
    alpha: float = parameter(
        10.0,
        title="Extra queries allowed",
        letter="alpha",
        unit="queries",
        help="How much the load of a server may exceed the mean load, which rules while the "
        "cluster hosts few queries.",
        minimum=0.0,
        maximum=MAX_ALPHA,
    )

    @property
    def rule(self) -> int:
        """The metric of the choice, a constant of `server_choice`."""
        return self.metric

    @property
    def draws_from(self) -> int:
        """The seed of random choices, if the algorithm has one."""
        return int(getattr(self, "seed", 0))

    def promised_caps(self, problem: PlacementProblem) -> Ints:
        """Return the most queries each server may host once all of `problem` has arrived.

        Where no server is within d(n), which takes alpha < 1 or departures, the least loaded is
        taken; while queries only arrive it then holds no more than the even share.
        """
        queries, capacities = problem.queries, problem.capacities
        caps = online_caps(queries, capacities, self.nu, self.alpha)
        return np.maximum(caps, even_caps(queries, capacities))

    def solve(self, problem: PlacementProblem, progress: Progress = silent) -> PlacementPlan:
        """Place the queries of `problem` one after the other, as if each were the last.

        The problem's own slack plays no part: the parameters' does.
        """
        started = time.perf_counter()
        assignment = self._place_in_turn(problem, progress)
        progress(1.0)
        caps = self.promised_caps(problem)
        return measure(problem, assignment, caps, time.perf_counter() - started)

    def _place_in_turn(self, problem: PlacementProblem, progress: Progress) -> SmallInts:
        state = self.state_to_fill(problem)
        homes = np.empty(problem.queries, np.int32)
        rows = arrays_of(problem, with_kinds=self.needs_kinds)
        by_cost = self.rule in (LEAST_COST, LEAST_COST_RARE) and problem.equal_servers
        for queries in in_stretches(problem.queries, progress):
            if by_cost:
                take_all_by_cost(state.board, self.rule, *rows[:2], queries, homes)
                continue
            arrives = np.ones_like(queries)
            apply_events(state.board, self.rule, self.draws_from, *rows, arrives, queries, homes)
        return homes

    def state_to_fill(self, problem: PlacementProblem) -> OnlineState:
        """Return an empty state without counts, for queries of `problem` that only arrive."""
        state = OnlineState(
            problem.servers,
            problem.rates,
            with_kinds=self.needs_kinds,
            capacities=problem.capacities,
            room=0,
        )
        state.know_types(problem)
        state.expect(self.nu, self.alpha, problem.queries + 1)
        return state


def arrays_of(problem: PlacementProblem, *, with_kinds: bool) -> tuple[Ints, SmallInts, SmallInts]:
    """Return the queries' rows and types (none if not needed), writable.

    Compiled code distinguishes arrays that are not; copies save compiling everything twice.
    """
    kinds = problem.types.of_query if with_kinds else np.zeros(0, np.int32)
    return problem.indptr.copy(), problem.indices.copy(), kinds.copy()


def in_stretches(queries: int, progress: Progress) -> Iterator[Ints]:
    """Yield the numbers of the queries in turn, by blocks, and report progress between."""
    for first in range(0, queries, _ARRIVALS_PER_REPORT):
        progress(first / queries)
        yield np.arange(first, min(first + _ARRIVALS_PER_REPORT, queries))
