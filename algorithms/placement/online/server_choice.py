"""The choice of a server for an arriving query: the pipeline of figure 2, compiled.

Of the servers within the balance constraint those of the best metric, of those the least loaded,
of those the lowest number. LeastCost does not look at every server: what a query adds to a server
depends only on which of its sources the server has, so sets of servers are intersected, from the
cheapest such case on.
"""

import numpy as np

from algorithms.compiled import compiled, inlined
from algorithms.placement.bits import Words, position
from algorithms.placement.online.board import ARRIVALS, Board
from algorithms.random_numbers import mixed
from algorithms.vocabulary import Floats, Ints, SmallInts

LEAST_COST, LEAST_COST_RARE, LEAST_SOURCE, LEAST_QT, ON_RAND = range(5)
# Up to so many sources every case is tried; beyond, every server is.
MOST_CASES = 4

_SEED_STEP = np.uint64(0xD1342543DE82EF95)
_ARRIVAL_STEP = np.uint64(0x9E3779B97F4A7C15)
_BIT = np.uint64(1)
_NONE = np.uint64(0)
_ALL = ~_NONE


@compiled
def choose_server(board: Board, rule: int, seed: int, sources: SmallInts, kind: int) -> int:
    """Return the server for an arriving query, after a call of `expect`."""
    anything = False
    for word in board.open:
        anything = anything or word != np.uint64(0)
    if not anything:
        return _least_loaded_of_all(board)
    if rule == ON_RAND:
        return _at_random(board.open, seed, board.marks[ARRIVALS])
    if rule <= LEAST_COST_RARE and len(sources) <= MOST_CASES:
        return least_cost(
            board.rates,
            board.sources.holds,
            board.readers,
            board.loads,
            board.capacities,
            board.open,
            board.scratch,
            sources,
            0,
            len(sources),
            rule == LEAST_COST_RARE,
        )
    return _by_scan(board, rule, sources, kind)


@compiled
def _least_loaded_of_all(board: Board) -> int:
    best, least = -1, np.inf
    for server in range(len(board.loads)):
        relative = (board.loads[server] + 1) / board.capacities[server]
        if board.active[server] and relative < least:
            best, least = server, relative
    return best


@inlined
def least_cost(
    rates: Floats,
    holds: Words,
    readers: Ints,
    loads: Ints,
    capacities: Floats,
    open_servers: Words,
    scratch: Floats,
    indices: SmallInts,
    first: int,
    last: int,
    rare: bool,
) -> int:
    """Return the open server of least cost for the sources `indices[first:last]`, -1 if none is.

    Tries the cases, bit i set where the server has the i-th source, from the cheapest on. Cases of
    equal cost are one; with `rare` the one whose sources have fewer readers is before.
    """
    cases = 1 << (last - first)
    for case in range(cases):
        scratch[0, case], scratch[1, case] = _price(
            rates, readers, indices, first, last, case, rare
        )
    tried, best = 0, -1
    while best < 0 and tried != (1 << cases) - 1:
        group = _cheapest(scratch, cases, tried)
        tried |= group
        least = np.inf
        for word in range(len(open_servers)):
            left = _in_group(holds, indices, first, last, group, word) & open_servers[word]
            while left != _NONE:
                server = (word << 6) + position(left & (~left + _BIT))
                left &= left - _BIT
                relative = (loads[server] + 1) / capacities[server]
                if relative < least:
                    best, least = server, relative
    return best


@inlined
def _price(
    rates: Floats,
    readers: Ints,
    indices: SmallInts,
    first: int,
    last: int,
    case: int,
    rare: bool,
) -> tuple[float, float]:
    """Return the cost of a case, and the readers of the sources that its servers have."""
    cost, rank = 0.0, 0.0
    for i in range(last - first):
        source = indices[first + i]
        if not case >> i & 1:
            cost += rates[source]
        elif rare:
            rank += readers[source]
    return cost, rank


@inlined
def _cheapest(scratch: Floats, cases: int, tried: int) -> int:
    """Return the cheapest untried cases and the first of them, as bits."""
    cost, rank, group = np.inf, np.inf, 0
    for case in range(cases):
        if tried >> case & 1:
            continue
        if scratch[0, case] < cost or (scratch[0, case] == cost and scratch[1, case] < rank):
            cost, rank, group = scratch[0, case], scratch[1, case], 0
        if scratch[0, case] == cost and scratch[1, case] == rank:
            group |= 1 << case
    return group


@inlined
def _in_group(
    holds: Words, indices: SmallInts, first: int, last: int, group: int, word: int
) -> np.uint64:
    """Return the servers of a word that are in any case of the group."""
    hosts = _NONE
    for case in range(1 << (last - first)):
        if group >> case & 1:
            servers = _ALL
            for i in range(last - first):
                has = holds[indices[first + i], word]
                servers &= has if case >> i & 1 else ~has
            hosts |= servers
    return hosts


@compiled
def _by_scan(board: Board, rule: int, sources: SmallInts, kind: int) -> int:
    """Return the best open server by a scan of all."""
    rates, holds, readers = board.rates, board.sources.holds, board.readers
    within, loads, sizes, traffic = board.open, board.loads, board.capacities, board.traffic
    kinds, totals = board.kinds.holds, board.kind_totals
    best, least = -1, (np.inf, np.inf, np.inf)
    for word in range(len(within)):
        left = within[word]
        while left != _NONE:
            bit = left & (~left + _BIT)
            left ^= bit
            server = (word << 6) + position(bit)
            penalty, rank = _added_rate_of(rates, holds, readers, sources, word, bit)
            if rule != LEAST_COST_RARE:
                rank = 0.0
            if rule == LEAST_SOURCE:
                penalty += traffic[0, server] + traffic[1, server]
            elif rule == LEAST_QT:
                penalty = totals[server] + (0.0 if kinds[kind, word] & bit else 1.0)
            key = (penalty, rank, (loads[server] + 1) / sizes[server])
            if key < least:
                best, least = server, key
    return best


@inlined
def _added_rate_of(
    rates: Floats, holds: Words, readers: Ints, sources: SmallInts, word: int, bit: np.uint64
) -> tuple[float, float]:
    """Return the rate that a query adds to a server, and the readers of the sources that it has."""
    added, rank = 0.0, 0.0
    for source in sources:
        if holds[source, word] & bit:
            rank += readers[source]
        else:
            added += rates[source]
    return added, rank


@compiled
def _at_random(words: Words, seed: int, arrival: int) -> int:
    """Return a random open server, by the seed and the number of earlier queries."""
    count = 0
    for word in words:
        left = word
        while left:
            left &= left - _BIT
            count += 1
    # splitmix64 at a position.
    drawn = np.uint64(seed) * _SEED_STEP + np.uint64(arrival + 1) * _ARRIVAL_STEP
    skip = int(mixed(drawn) % np.uint64(count))
    for index in range(len(words)):
        left = words[index]
        while left:
            if skip == 0:
                return (index << 6) + position(left & (~left + _BIT))
            left &= left - _BIT
            skip -= 1
    return -1
