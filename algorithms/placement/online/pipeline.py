"""The pipeline of Figure 2 that all online algorithms share, and its loop over arrivals and ends.

The servers that keep the balance constraint, of those the ones of the best metric, of those the
least loaded, of those the lowest number. The parameters are in the algorithm, the state of
the cluster is in an `OnlineState`.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from algorithms.compiled import compiled, inlined
from algorithms.placement.balance import even_caps, online_caps
from algorithms.placement.bits import Words, exclude
from algorithms.placement.online.board import ARRIVALS, CAP, LIVE, Board, enter, expect, leave
from algorithms.placement.online.server_choice import (
    LEAST_COST,
    LEAST_COST_RARE,
    MOST_CASES,
    choose_server,
    least_cost,
)
from algorithms.placement.online.state import OnlineState
from algorithms.placement.problem import MAX_ALPHA, PlacementProblem, relative_slack
from algorithms.placement.result import PlacementPlan, measure
from algorithms.vocabulary import Floats, Ints, Parameters, Progress, SmallInts, parameter, silent

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


@compiled
def take(board: Board, rule: int, seed: int, sources: SmallInts, kind: int) -> int:
    """Choose a server for an arriving query and count the query on it."""
    expect(board)
    server = choose_server(board, rule, seed, sources, kind)
    board.marks[ARRIVALS] += 1
    enter(board, sources, kind, server)
    return server


@compiled
def take_all_by_cost(
    board: Board,
    rule: int,
    indptr: Ints,
    indices: SmallInts,
    queries: Ints,
    homes: SmallInts,
) -> None:
    """Let queries arrive, for LeastCost on equal servers and a board that keeps no counts.

    The choices of `apply_events` in far less time: the board is taken apart once (see
    `compiled.inlined`).
    """
    rates, holds, readers, loads = board.rates, board.sources.holds, board.readers, board.loads
    sizes, within, scratch = board.capacities, board.open, board.scratch
    thresholds, marks, traffic = board.thresholds, board.marks, board.traffic
    rare = rule == LEAST_COST_RARE
    for query in queries:
        after = marks[CAP] + 1
        if after == 0 or (after < len(thresholds) and marks[LIVE] + 1 >= thresholds[after]):
            expect(board)
        first, last = indptr[query], indptr[query + 1]
        server = -1
        if last - first <= MOST_CASES:
            server = least_cost(
                rates, holds, readers, loads, sizes, within, scratch, indices, first, last, rare
            )
        if server < 0:
            server = choose_server(board, rule, 0, indices[first:last], -1)
        _read(rates, holds, readers, traffic, indices, first, last, server)
        loads[server] += 1
        if loads[server] >= marks[CAP]:
            exclude(within, server)
        marks[LIVE], marks[ARRIVALS], homes[query] = marks[LIVE] + 1, marks[ARRIVALS] + 1, server


@inlined
def _read(
    rates: Floats,
    holds: Words,
    readers: Ints,
    traffic: Floats,
    indices: SmallInts,
    first: int,
    last: int,
    server: int,
) -> None:
    """Subscribe the server to the sources `indices[first:last]`."""
    word, bit = server >> 6, np.uint64(1) << np.uint64(server & 63)
    for slot in range(first, last):
        source = indices[slot]
        readers[source] += 1
        if not holds[source, word] & bit:
            holds[source, word] |= bit
            traffic[0, server] += rates[source]


@compiled
def apply_events(
    board: Board,
    rule: int,
    seed: int,
    indptr: Ints,
    indices: SmallInts,
    kinds: SmallInts,
    arrives: Ints,
    queries: Ints,
    homes: SmallInts,
) -> None:
    """Let queries arrive (`arrives` 1) and depart (0) in this order; `kinds` may be empty.

    `homes`: the server of each query, -1 once it departed.
    """
    for index in range(len(queries)):
        query = queries[index]
        sources = indices[indptr[query] : indptr[query + 1]]
        kind = int(kinds[query]) if len(kinds) else -1
        if arrives[index]:
            homes[query] = take(board, rule, seed, sources, kind)
        else:
            leave(board, sources, kind, homes[query])
            homes[query] = -1
