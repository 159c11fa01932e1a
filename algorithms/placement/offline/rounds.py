"""The rounds of IC and MMS, section 4.1.2: the best pair of type and server, again and again.

A round that tried every pair would cost types times servers. Here each server keeps a heap of the
types that share a source with it, since only their added rate is below their full rate; all other
types wait in one common heap, ordered by full rate. The best of both tops is the server's best.
"""

from typing import NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.placement.offline import heaps
from algorithms.placement.offline.heaps import NONE, SIZE, TYPE, Pool
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.types import readers_by_source
from algorithms.vocabulary import Flags, Floats, Ints, Progress, SmallInts

# Rounds between two reports of progress: a few milliseconds each.
_ROUNDS_PER_REPORT = 2_000


class Board(NamedTuple):
    """Everything a round reads and changes; T types, k servers, m sources.

    `rates` float64[m]; types by rows `indptr`, `indices`; types of a source by rows
    `reader_indptr`, `readers`; `waiting` int64[T] queries not yet assigned; `free` int64[k]
    places left; `traffic` float64[k] is f(Q_j); `received` bool[k + 1, m] which sources a server
    gets; `roots` int64[k + 1] the heaps, the common one last; `given` int64[T + k, 3] what each
    round assigned (type, server, queries); `marks` int64[2]: rounds done, queries left.
    """

    rates: Floats
    indptr: Ints
    indices: SmallInts
    reader_indptr: Ints
    readers: SmallInts
    waiting: Ints
    free: Ints
    traffic: Floats
    received: Flags
    roots: Ints
    given: Ints
    marks: Ints


ROUNDS, LEFT = 0, 1


def greedy_assignment(
    problem: PlacementProblem, *, by_traffic: bool, progress: Progress | None
) -> SmallInts:
    """Return the server of each query, int32[n]; the problem must be feasible.

    The metric is the server's whole traffic with the type (MMS) when `by_traffic`, else only
    what the type adds to it (IC). Ties: the least added rate, the larger type, the least loaded
    server, the lowest server, the type that appeared first.
    """
    board = _laid_out(problem)
    pool = heaps.new_pool(4 * len(problem.types) + 16)
    pool = fill_common_heap(board, pool)
    while board.marks[LEFT]:
        pool = play(board, pool, by_traffic, _ROUNDS_PER_REPORT)
        if progress is not None:
            progress(1 - int(board.marks[LEFT]) / problem.queries)
    return spread(problem, board.given[: board.marks[ROUNDS]])


def spread(problem: PlacementProblem, given: Ints) -> SmallInts:
    """Give the queries of each type, in order of arrival, the servers their type was given.

    `given` int64[r, 3]: type, server and number of queries of each round, in order.
    """
    by_type = given[np.argsort(given[:, 0], kind="stable")]
    assignment = np.empty(problem.queries, np.int32)
    order = np.argsort(problem.types.of_query, kind="stable")
    assignment[order] = np.repeat(by_type[:, 1], by_type[:, 2])
    return assignment


def _laid_out(problem: PlacementProblem) -> Board:
    types, servers, sources = problem.types, problem.servers, len(problem.rates)
    reader_indptr, readers = readers_by_source(types, sources)
    return Board(
        # A copy, since compiled code tells read-only arrays from others and would exist twice.
        rates=problem.rates.copy(),
        indptr=types.indptr,
        indices=types.indices,
        reader_indptr=reader_indptr,
        readers=readers,
        waiting=types.sizes.copy(),
        free=problem.caps.copy(),
        traffic=np.zeros(servers),
        received=np.zeros((servers + 1, sources), np.bool_),
        roots=np.full(servers + 1, NONE, np.int64),
        # Each round empties a type or fills a server.
        given=np.zeros((len(types) + servers, 3), np.int64),
        marks=np.array([0, problem.queries], np.int64),
    )


@compiled
def fill_common_heap(board: Board, pool: Pool) -> Pool:
    """Put every type into the common heap, at its full rate."""
    common = len(board.free)
    for kind in range(len(board.waiting)):
        pool = _offer(board, pool, common, kind)
    return pool


@compiled
def play(board: Board, pool: Pool, by_traffic: bool, rounds: int) -> Pool:
    """Play at most `rounds` rounds and return the pool, which may have grown."""
    for _ in range(rounds):
        if board.marks[LEFT] == 0:
            break
        pool, kind, server = best_pair(board, pool, by_traffic)
        pool = assign(board, pool, kind, server)
    return pool


@compiled
def best_pair(board: Board, pool: Pool, by_traffic: bool) -> tuple[Pool, int, int]:
    """Return the pool, and the type and server that the round's rule selects."""
    common = len(board.free)
    pool = _refresh(board, pool, common)
    top = board.roots[common]
    kind, server, metric, added, size = NONE, NONE, 0.0, 0.0, 0
    for j in range(common):
        if board.free[j] == 0:
            continue
        pool = _refresh(board, pool, j)
        cell = _first_of(pool, board.roots[j], top)
        its_added, its_size = pool.added[cell], pool.cells[cell, SIZE]
        its_metric = board.traffic[j] + its_added if by_traffic else its_added
        if server != NONE:
            if its_metric > metric:
                continue
            if its_metric == metric:
                if heaps.is_better(added, size, its_added, its_size):
                    continue
                same = added == its_added and size == its_size
                if same and board.free[j] <= board.free[server]:
                    continue
        server, kind = j, pool.cells[cell, TYPE]
        metric, added, size = its_metric, its_added, its_size
    return pool, kind, server


@compiled
def assign(board: Board, pool: Pool, kind: int, server: int) -> Pool:
    """Put as many queries of a type on a server as it has places for."""
    queries = min(board.waiting[kind], board.free[server])
    board.given[board.marks[ROUNDS]] = (kind, server, queries)
    board.marks[ROUNDS] += 1
    board.marks[LEFT] -= queries
    board.waiting[kind] -= queries
    board.free[server] -= queries
    board.traffic[server] += _added_rate(board, server, kind)
    if board.free[server] == 0:
        board.roots[server] = NONE
        return pool
    return _subscribe(board, pool, server, kind)


@compiled
def _subscribe(board: Board, pool: Pool, server: int, kind: int) -> Pool:
    """Have the server receive the type's sources; other types that read them now add less."""
    sources = board.indices[board.indptr[kind] : board.indptr[kind + 1]]
    fresh = sources[~board.received[server][sources]]
    board.received[server][sources] = True
    for source in fresh:
        for at in range(board.reader_indptr[source], board.reader_indptr[source + 1]):
            if board.waiting[board.readers[at]] > 0:
                pool = _offer(board, pool, server, board.readers[at])
    return pool


@compiled
def _offer(board: Board, pool: Pool, server: int, kind: int) -> Pool:
    added = _added_rate(board, server, kind)
    pool, root = heaps.push(pool, board.roots[server], added, board.waiting[kind], kind)
    board.roots[server] = root
    return pool


@compiled
def _refresh(board: Board, pool: Pool, server: int) -> Pool:
    """Drop entries from the top of a heap until the top is true."""
    while board.roots[server] != NONE:
        top = board.roots[server]
        kind = pool.cells[top, TYPE]
        waiting = board.waiting[kind]
        current = waiting > 0 and pool.added[top] == _added_rate(board, server, kind)
        if current and pool.cells[top, SIZE] == waiting:
            break
        board.roots[server] = heaps.pop(pool, top)
        if current:
            pool = _offer(board, pool, server, kind)
    return pool


@compiled
def _added_rate(board: Board, server: int, kind: int) -> float:
    """Return f(Q_j with the type) - f(Q_j), summed in order of the sources: the same bits."""
    added = 0.0
    for at in range(board.indptr[kind], board.indptr[kind + 1]):
        source = board.indices[at]
        if not board.received[server, source]:
            added += board.rates[source]
    return added


@compiled
def _first_of(pool: Pool, a: int, b: int) -> int:
    """Return the better of two tops, of which one may be missing."""
    if a == NONE:
        return b
    if b == NONE:
        return a
    if pool.added[a] == pool.added[b] and pool.cells[a, SIZE] == pool.cells[b, SIZE]:
        return a if pool.cells[a, TYPE] <= pool.cells[b, TYPE] else b
    better = heaps.is_better(pool.added[a], pool.cells[a, SIZE], pool.added[b], pool.cells[b, SIZE])
    return a if better else b
