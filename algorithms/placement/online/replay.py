"""The compiled loop over arrivals and departures."""

import numpy as np

from algorithms.compiled import compiled, inlined
from algorithms.placement.bits import Words, exclude
from algorithms.placement.online.board import ARRIVALS, CAP, LIVE, Board, enter, expect, leave
from algorithms.placement.online.server_choice import (
    LEAST_COST_RARE,
    MOST_CASES,
    choose_server,
    least_cost,
)
from algorithms.vocabulary import Floats, Ints, SmallInts


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
