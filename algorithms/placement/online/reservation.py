"""Placement with known type frequencies, section 5.2.1: places are reserved in advance."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.placement.bits import is_member
from algorithms.placement.offline.rules import IncrementalCost, Mms
from algorithms.placement.online.board import ARRIVALS, Board, enter, expect
from algorithms.placement.online.pipeline import OnlinePlacement, arrays_of, in_stretches
from algorithms.placement.online.server_choice import LEAST_COST, choose_server
from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import Ints, Progress, SmallInts, parameter


class Reserved(NamedTuple):
    """Places by query type: those of type t from `starts[t]` to `starts[t + 1]`.

    `starts` int64[T + 1]; `servers` int64[...], ascending within a type; `left` int64[...].
    """

    starts: Ints
    servers: Ints
    left: Ints


@dataclass(frozen=True)
class Reservation(OnlinePlacement):
    """Places reserved by an offline plan of the expected types, section 5.2.1, else LeastCost.

    A query takes a reserved place of its type on the first server that has one left and is within
    the balance constraint; without one it is overflow and is placed by LeastCost.
    """

    known: float = parameter(
        1.0,
        title="Known queries",
        help="Share of the queries, the first ones, whose types are counted to know the "
        "frequencies; 1: all, as if they were known exactly.",
        minimum=0.0,
        maximum=1.0,
    )
    plan: str = parameter(
        "ic",
        title="Plan of the reservations",
        help="The offline algorithm that makes the reservations.",
        choices={"ic": "IC", "mms": "MMS"},
    )

    def _place_in_turn(self, problem: PlacementProblem, progress: Progress) -> SmallInts:
        state = self.state_to_fill(problem)
        homes = np.empty(problem.queries, np.int32)
        reserved = self.reserved(problem)
        kinds = problem.types.of_query.copy()
        indptr, indices, _ = arrays_of(problem, with_kinds=False)
        for queries in in_stretches(problem.queries, progress):
            _take_reserved(state.board, reserved, indptr, indices, kinds, queries, homes)
        return homes

    def reserved(self, problem: PlacementProblem) -> Reserved:
        """Return the places that the types of the first queries of `problem` are expected to need.

        Empty where nothing is known, and where the offline plan finds no place for all.
        """
        seen = int(self.known * problem.queries)
        rows = problem.indptr[: seen + 1]
        known = replace(problem, indptr=rows, indices=problem.indices[: rows[-1]])
        types = len(problem.types)
        if not seen or int(known.caps.sum()) < seen:
            return Reserved(np.zeros(types + 1, np.int64), *np.zeros((2, 0), np.int64))
        plan = (Mms() if self.plan == "mms" else IncrementalCost()).solve(known)
        cells = problem.types.of_query[:seen].astype(np.int64) * problem.servers + plan.assignment
        distinct, counts = np.unique(cells, return_counts=True)
        kinds, servers = np.divmod(distinct, problem.servers)
        starts = np.searchsorted(kinds, np.arange(types + 1)).astype(np.int64)
        left = np.ceil(counts * problem.queries / seen).astype(np.int64)
        return Reserved(starts, servers.astype(np.int64), left)


@compiled
def _take_reserved(
    board: Board,
    reserved: Reserved,
    indptr: Ints,
    indices: SmallInts,
    kinds: SmallInts,
    queries: Ints,
    homes: SmallInts,
) -> None:
    for query in queries:
        sources = indices[indptr[query] : indptr[query + 1]]
        expect(board)
        server = _reserved_for(board, reserved, kinds[query])
        if server < 0:
            server = choose_server(board, LEAST_COST, 0, sources, -1)
        board.marks[ARRIVALS] += 1
        enter(board, sources, -1, server)
        homes[query] = server


@compiled
def _reserved_for(board: Board, reserved: Reserved, kind: int) -> int:
    """Take a reserved place of the type and return its server, -1 where there is none."""
    for slot in range(reserved.starts[kind], reserved.starts[kind + 1]):
        server = reserved.servers[slot]
        if reserved.left[slot] > 0 and is_member(board.open, server):
            reserved.left[slot] -= 1
            return int(server)
    return -1
