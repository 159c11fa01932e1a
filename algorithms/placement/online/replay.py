"""Arrivals and departures by the million: the loop around a choice, compiled."""

import numpy as np

from algorithms.compiled import compiled
from algorithms.placement.bits import exclude
from algorithms.placement.online.board import ARRIVALS, CAP, LIVE, Board, enter, expect, leave
from algorithms.placement.online.choosing import LEAST_COST_RARE, MOST_CASES, chosen, least_cost
from algorithms.vocabulary import Ints, SmallInts


@compiled
def take(board: Board, rule: int, seed: int, sources: SmallInts, kind: int) -> int:
    """Choose a server for an arriving query and count the query there."""
    expect(board)
    server = chosen(board, rule, seed, sources, kind)
    board.marks[ARRIVALS] += 1
    enter(board, sources, kind, server)
    return server


@compiled
def take_all(
    board: Board,
    rule: int,
    seed: int,
    indptr: Ints,
    indices: SmallInts,
    kinds: SmallInts,
    queries: Ints,
    homes: SmallInts,
) -> None:
    """Take `queries` in this order and note each one's server in `homes`; `kinds` may be empty."""
    for query in queries:
        sources = indices[indptr[query] : indptr[query + 1]]
        kind = int(kinds[query]) if len(kinds) else -1
        homes[query] = take(board, rule, seed, sources, kind)


@compiled
def take_all_by_cost(
    board: Board,
    rule: int,
    indptr: Ints,
    indices: SmallInts,
    queries: Ints,
    homes: SmallInts,
) -> None:
    """Do what `take_all` does, for LeastCost on equal servers and a board that keeps no counts.

    The same choices in a third of the time: numba counts references to every array reached
    through a tuple and passed on, so here the board is taken apart once.
    """
    rates, holds, readers, loads = board.rates, board.sources.holds, board.readers, board.loads
    capacities, open_servers, scratch = board.capacities, board.open, board.scratch
    thresholds, marks, traffic = board.thresholds, board.marks, board.traffic
    rare = rule == LEAST_COST_RARE
    for query in queries:
        cap, expected = marks[CAP], marks[LIVE] + 1
        if cap < 0 or (cap + 1 < len(thresholds) and expected >= thresholds[cap + 1]):
            expect(board)
        first, last = indptr[query], indptr[query + 1]
        server = -1
        if last - first <= MOST_CASES:
            server = least_cost(
                rates,
                holds,
                readers,
                loads,
                capacities,
                open_servers,
                scratch,
                indices,
                first,
                last,
                rare,
            )
        if server < 0:
            server = chosen(board, rule, 0, indices[first:last], -1)
        for slot in range(first, last):
            source = indices[slot]
            readers[source] += 1
            word, bit = server >> 6, np.uint64(1) << np.uint64(server & 63)
            if not holds[source, word] & bit:
                holds[source, word] |= bit
                traffic[0, server] += rates[source]
        loads[server] += 1
        if loads[server] >= marks[CAP]:
            exclude(open_servers, server)
        marks[LIVE] += 1
        marks[ARRIVALS] += 1
        homes[query] = server


@compiled
def live_through(
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
    """Let queries arrive (`arrives` 1) and depart (0) in this order."""
    for at in range(len(queries)):
        query = queries[at]
        sources = indices[indptr[query] : indptr[query + 1]]
        kind = int(kinds[query]) if len(kinds) else -1
        if arrives[at]:
            homes[query] = take(board, rule, seed, sources, kind)
        else:
            leave(board, sources, kind, homes[query])
            homes[query] = -1
