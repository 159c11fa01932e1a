"""The choice of a server for an arriving query where loads are limited instead of counts.

The pipeline of figure 2 (section 5) with another constraint: of the servers whose load stays within
the limits those to which the query adds least, of those the least loaded.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.placement.bits import is_member
from algorithms.placement.online.board import ARRIVALS, Board, enter
from algorithms.placement.online.state import OnlineState
from algorithms.vocabulary import Floats, SmallInts


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
