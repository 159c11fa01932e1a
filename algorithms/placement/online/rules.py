"""The online algorithms of section 5, and the random baseline of section 6.1.

With known frequencies of types, places are reserved in advance (section 5.2.1).

Where loads are limited instead of counts, the pipeline of figure 2 (section 5) has another
constraint: of the servers whose load stays within the limits those to which the query adds least,
of those the least loaded.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Final, NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.placement.bits import is_member
from algorithms.placement.offline.rules import IncrementalCost, Mms
from algorithms.placement.online import server_choice
from algorithms.placement.online.board import ARRIVALS, Board, enter, expect
from algorithms.placement.online.pipeline import OnlinePlacement, arrays_of, in_stretches
from algorithms.placement.online.server_choice import LEAST_COST, choose_server
from algorithms.placement.online.state import OnlineState
from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import Floats, Ints, Progress, SmallInts, parameter

_LARGEST_SEED: Final = 2**63 - 1


@dataclass(frozen=True)
class LeastCost(OnlinePlacement):
    """Least incremental cost first, section 5.1: the server to which the query adds least."""

    prefer: str = parameter(
        "load",
        title="Among equals",
        help="Among servers of equal incremental cost: the least loaded, as in the paper; or one "
        "that has the sources with fewer readers, and of those the least loaded.",
        choices={"load": "Least loaded", "rare": "Fewer readers of its sources"},
    )

    @property
    def rule(self) -> int:
        """Least incremental cost."""
        return server_choice.LEAST_COST_RARE if self.prefer == "rare" else self.metric


@dataclass(frozen=True)
class LeastSource(OnlinePlacement):
    """Least source cost per server first, section 5.1: the server with least traffic then."""

    metric: ClassVar[int] = server_choice.LEAST_SOURCE


@dataclass(frozen=True)
class LeastQueryTypes(OnlinePlacement):
    """Least number of query types first (LeastQT), section 5.1."""

    needs_kinds: ClassVar[bool] = True
    metric: ClassVar[int] = server_choice.LEAST_QT


@dataclass(frozen=True)
class OnRand(OnlinePlacement):
    """Random baseline, section 6.1: any server that keeps the balance constraint."""

    metric: ClassVar[int] = server_choice.ON_RAND

    seed: int = parameter(
        0, help="Same seed, same arrivals, same servers.", minimum=0, maximum=_LARGEST_SEED
    )


class LoadLimits(NamedTuple):
    """The largest load of a server above the mean, and in all, as shares of its capacity."""

    imbalance: float
    load: float


@dataclass(frozen=True, eq=False)
class LeastCostWithinLoads:
    """Least incremental cost first, on servers within the limits of their loads.

    `capacities` float64[S]: records/s that each server can process. Where no server is within the
    limits, the one that exceeds them least is taken; without rates, the one with the fewest
    queries.
    """

    capacities: Floats
    limits: LoadLimits

    def place(self, state: OnlineState, sources: Iterable[int]) -> int:
        """Return the server for an arriving query, and count the query in the state.

        Raises `BadProblem` when the query reads nothing or an unknown source.
        """
        wanted = state.sources(sources)
        state.have_room(len(wanted))
        return int(_take(state.board, self.capacities, *self.limits, wanted))


@compiled
def _take(
    board: Board, capacities: Floats, imbalance: float, load: float, sources: SmallInts
) -> int:
    mean, servers = 0.0, 0
    for server in range(len(board.loads)):
        if board.active[server]:
            mean += (board.traffic[0, server] + board.traffic[1, server]) / capacities[server]
            servers += 1
    best, least = -1, (np.inf, np.inf, np.inf, np.inf)
    for server in range(len(board.loads)):
        if not board.active[server]:
            continue
        added = _added(board, sources, server)
        received = board.traffic[0, server] + board.traffic[1, server] + added
        share = received / capacities[server]
        above = share - (mean + added / capacities[server]) / servers
        exceeded = max(0.0, above - imbalance, share - load)
        key = (exceeded, added, share, (board.loads[server] + 1) / capacities[server])
        if key < least:
            best, least = server, key
    board.marks[ARRIVALS] += 1
    enter(board, sources, -1, best)
    return best


@compiled
def _added(board: Board, sources: SmallInts, server: int) -> float:
    """Return the rate that a query adds to a server."""
    added = 0.0
    for source in sources:
        if not is_member(board.sources.holds[source], server):
            added += board.rates[source]
    return added


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
