"""The state of a cluster as arrays for compiled code."""

from typing import NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.placement.bits import Words, exclude, include
from algorithms.placement.online.incidence import Incidence, count_in, count_of, count_out
from algorithms.vocabulary import Flags, Floats, Ints, SmallInts

# Positions in `Board.marks`.
LIVE, ARRIVALS, CAP, ACTIVE = 0, 1, 2, 3


class Board(NamedTuple):
    """A cluster's live queries by server; m sources, S server numbers of which some are active.

    `rates` float64[m]; `sources`, `kinds`: which servers have a source, a query type (kinds: only
    kept for LeastQT, else without rows); `kind_totals` int64[S]: query types per server; `readers`
    int64[m]: live queries that read a source; `loads` int64[S]; `traffic` float64[2, S]: f(Q_j)
    and what rounding has kept from it; `active` bool[S]; `capacities` float64[S], all 1 on equal
    servers; `open` uint64[words]: active servers within the balance constraint; `thresholds`
    int64[...]: see `caps.thresholds`, empty on unequal servers; `slack` float64[2]: 1 + nu, alpha;
    `marks` int64[4]: live queries, arrivals ever, the cap that holds, active servers; `scratch`
    float64[2, 16].
    """

    rates: Floats
    sources: Incidence
    kinds: Incidence
    kind_totals: Ints
    readers: Ints
    loads: Ints
    traffic: Floats
    active: Flags
    capacities: Floats
    open: Words
    thresholds: Ints
    slack: Floats
    marks: Ints
    scratch: Floats


@compiled
def enter(board: Board, sources: SmallInts, kind: int, server: int) -> None:
    """Count one more query on a server; `kind` -1 where types are not kept."""
    holds, keys, counts, used = board.sources
    for source in sources:
        board.readers[source] += 1
        if count_in(holds, keys, counts, used, source, server, 1):
            _add(board.traffic, server, board.rates[source])
    if kind >= 0:
        holds, keys, counts, used = board.kinds
        board.kind_totals[server] += count_in(holds, keys, counts, used, kind, server, 1)
    board.loads[server] += 1
    board.marks[LIVE] += 1
    if len(board.thresholds) and board.loads[server] >= board.marks[CAP]:
        exclude(board.open, server)


@compiled
def leave(board: Board, sources: SmallInts, kind: int, server: int) -> None:
    """Count one query less on a server."""
    holds, keys, counts, used = board.sources
    for source in sources:
        board.readers[source] -= 1
        if count_out(holds, keys, counts, used, source, server):
            _add(board.traffic, server, -board.rates[source])
    if kind >= 0:
        holds, keys, counts, used = board.kinds
        board.kind_totals[server] -= count_out(holds, keys, counts, used, kind, server)
    board.loads[server] -= 1
    board.marks[LIVE] -= 1
    if board.loads[server] == 0:
        board.traffic[:, server] = 0.0
    if len(board.thresholds) and board.active[server] and board.loads[server] < board.marks[CAP]:
        include(board.open, server)


@compiled
def _add(traffic: Floats, server: int, rate: float) -> None:
    """Add to a server's traffic by Neumaier's sum: a plain one drifts over months of churn."""
    total = traffic[0, server] + rate
    if abs(traffic[0, server]) >= abs(rate):
        traffic[1, server] += (traffic[0, server] - total) + rate
    else:
        traffic[1, server] += (rate - total) + traffic[0, server]
    traffic[0, server] = total


@compiled
def expect(board: Board) -> None:
    """Find the servers within the balance constraint for another query, equation 7."""
    queries = board.marks[LIVE] + 1
    if not len(board.thresholds):
        _open_by_share(board, queries)
        return
    cap = board.marks[CAP]
    while cap + 1 < len(board.thresholds) and queries >= board.thresholds[cap + 1]:
        cap += 1
    while cap > 0 and queries < board.thresholds[cap]:
        cap -= 1
    if cap != board.marks[CAP]:
        board.marks[CAP] = cap
        reopen(board)


@compiled
def reopen(board: Board) -> None:
    """Find the servers below the cap again."""
    board.open[:] = np.uint64(0)
    for server in range(len(board.loads)):
        if board.active[server] and board.loads[server] < board.marks[CAP]:
            include(board.open, server)


@compiled
def _open_by_share(board: Board, queries: int) -> None:
    """On unequal servers: each within its share of the bound, up to rounding."""
    board.open[:] = np.uint64(0)
    total = 0.0
    for server in range(len(board.loads)):
        if board.active[server]:
            total += board.capacities[server]
    bound = max(queries + board.marks[ACTIVE] * board.slack[1], board.slack[0] * queries)
    for server in range(len(board.loads)):
        most = bound * board.capacities[server] / total
        if board.active[server] and board.loads[server] + 1 <= most * (1 + 1e-12):
            include(board.open, server)


@compiled
def enter_counts(board: Board, rows: Ints) -> None:
    """Enter how many queries of a server read a source, int64[r, 3]: server, source, queries.

    The loads stay.
    """
    holds, keys, counts, used = board.sources
    for index in range(len(rows)):
        server, source, queries = rows[index]
        if queries > 0:
            board.readers[source] += queries
            if count_in(holds, keys, counts, used, source, server, queries):
                _add(board.traffic, server, board.rates[source])


@compiled
def least_count(board: Board, sources: SmallInts, server: int) -> int:
    """Return the most queries of the server that can read all these sources."""
    holds, keys, counts, _ = board.sources
    least = board.loads[server]
    for source in sources:
        least = min(least, count_of(holds, keys, counts, source, server))
    return int(least)
