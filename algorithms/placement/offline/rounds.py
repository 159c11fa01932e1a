"""The rounds of IC and MMS, section 4.1.2: each takes the best pair of type and server.

A round that tried every pair would cost types times servers. Here each server keeps a heap of the
types that share a source with it, since only their added rate is below their full rate; all other
types wait in one common heap, ordered by full rate. The best of both tops is the server's best.
A round changes one type and one server, so the tops of the other heaps do not change.
"""

from typing import NamedTuple

import numpy as np

from algorithms.compiled import compiled, inlined
from algorithms.placement.bits import Words, include, is_member
from algorithms.placement.offline import heaps
from algorithms.placement.offline.heaps import NONE, SIZE, TYPE, Pool
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.types import readers_by_source
from algorithms.vocabulary import Floats, Ints, Progress, SmallInts

# Rounds between two reports of progress: a few milliseconds each.
_ROUNDS_PER_REPORT = 2_000


class Board(NamedTuple):
    """The state of the rounds; T types, k servers, m sources.

    `rates` float64[m]; types by rows `indptr`, `indices`; types of a source by rows
    `reader_indptr`, `readers`; `waiting` int64[T] queries not yet assigned; `free` int64[k]
    places left; `traffic` float64[k] is f(Q_j); `received` uint64[m, words] which servers get a
    source, one bit each; `roots` int64[k + 1] the heaps, the common one last, and their true tops
    in `top_added` float64[k + 1], `top_size` int64[k + 1], `top_kind` int64[k + 1] (-1: empty,
    -2: to be found); `caps` int64[k], `capacities` float64[k]; `sizes` float64[k]: capacities by
    which traffic is divided, 1 on equal servers; `given` int64[T + k, 3] what each round assigned
    (type, server, queries); `marks` int64[3]: rounds done, queries left, the last round's type.
    """

    rates: Floats
    indptr: Ints
    indices: SmallInts
    reader_indptr: Ints
    readers: SmallInts
    waiting: Ints
    free: Ints
    traffic: Floats
    received: Words
    roots: Ints
    top_added: Floats
    top_size: Ints
    top_kind: Ints
    caps: Ints
    capacities: Floats
    sizes: Floats
    given: Ints
    marks: Ints


ROUNDS, LEFT, LAST = 0, 1, 2
UNKNOWN = -2


def greedy_assignment(
    problem: PlacementProblem, *, by_traffic: bool, progress: Progress
) -> SmallInts:
    """Return the server of each query, int32[n]; the problem must be feasible.

    The metric is the server's whole traffic with the type (MMS) when `by_traffic`, divided by its
    capacity where capacities differ, else only what the type adds to it (IC). Ties: the least added
    rate, the larger type, the least loaded server, the lowest server, the type that appeared first.
    """
    board = _lay_out(problem)
    pool = heaps.new_pool(4 * len(problem.types) + 16)
    pool = fill_common_heap(board, pool)
    while board.marks[LEFT]:
        pool = play(board, pool, by_traffic, _ROUNDS_PER_REPORT)
        progress(1 - int(board.marks[LEFT]) / problem.queries)
    return spread(problem, board.given[: board.marks[ROUNDS]])


def spread(problem: PlacementProblem, given: Ints) -> SmallInts:
    """Assign the queries of each type, in order of arrival, to the servers of their type.

    `given` int64[r, 3]: type, server and number of queries of each round, in order.
    """
    by_type = given[np.argsort(given[:, 0], kind="stable")]
    assignment = np.empty(problem.queries, np.int32)
    order = np.argsort(problem.types.of_query, kind="stable")
    assignment[order] = np.repeat(by_type[:, 1], by_type[:, 2])
    return assignment


def _lay_out(problem: PlacementProblem) -> Board:
    types, servers, sources = problem.types, problem.servers, len(problem.rates)
    reader_indptr, readers = readers_by_source(types, sources)
    return Board(
        # A writable copy: for the type of read-only arrays the code would compile again.
        rates=problem.rates.copy(),
        indptr=types.indptr,
        indices=types.indices,
        reader_indptr=reader_indptr,
        readers=readers,
        waiting=types.sizes.copy(),
        free=problem.caps.copy(),
        traffic=np.zeros(servers),
        received=np.zeros((sources, servers // 64 + 1), np.uint64),
        roots=np.full(servers + 1, NONE, np.int64),
        top_added=np.zeros(servers + 1),
        top_size=np.zeros(servers + 1, np.int64),
        top_kind=np.full(servers + 1, NONE, np.int64),
        caps=problem.caps.copy(),
        capacities=problem.capacities.copy(),
        sizes=np.ones(servers) if problem.equal_servers else problem.capacities.copy(),
        # Each round empties a type or fills a server.
        given=np.zeros((len(types) + servers, 3), np.int64),
        marks=np.array([0, problem.queries, NONE], np.int64),
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
    pool = _find_tops(board, pool)
    free, traffic, caps, capacities = board.free, board.traffic, board.caps, board.capacities
    sizes = board.sizes
    top_added, top_size, top_kind = board.top_added, board.top_size, board.top_kind
    common = len(free)
    server, kind, metric, added, size, pressure = NONE, NONE, 0.0, 0.0, 0, 0.0
    for j in range(common):
        if free[j] == 0:
            continue
        heap = _better_top(top_added, top_size, top_kind, j, common)
        its_added, its_size = top_added[heap], top_size[heap]
        its_metric = (traffic[j] + its_added) / sizes[j] if by_traffic else its_added
        its_pressure = (caps[j] - free[j] + 1) / capacities[j]
        if server != NONE:
            if its_metric > metric:
                continue
            if its_metric == metric:
                if heaps.is_better(added, size, its_added, its_size):
                    continue
                same = added == its_added and size == its_size
                if same and its_pressure >= pressure:
                    continue
        server, kind, pressure = j, top_kind[heap], its_pressure
        metric, added, size = its_metric, its_added, its_size
    return pool, kind, server


@compiled
def _find_tops(board: Board, pool: Pool) -> Pool:
    """Refresh the tops of all heaps of servers with room, and of the common heap."""
    changed = board.marks[LAST]
    # Reached through the board at each step, arrays would cost more than the comparison.
    top_kind = board.top_kind
    for heap in range(len(top_kind)):
        known = top_kind[heap]
        if known == UNKNOWN or (known == changed and known != NONE):
            pool = _find_top(board, pool, heap)
    return pool


@compiled
def _find_top(board: Board, pool: Pool, heap: int) -> Pool:
    pool = _refresh(board, pool, heap)
    root = board.roots[heap]
    board.top_kind[heap] = NONE
    if root != NONE:
        board.top_added[heap] = pool.added[root]
        board.top_size[heap] = pool.cells[root, SIZE]
        board.top_kind[heap] = pool.cells[root, TYPE]
    return pool


@compiled
def assign(board: Board, pool: Pool, kind: int, server: int) -> Pool:
    """Put as many queries of a type on a server as fit, and subscribe it to the type's sources."""
    queries = min(board.waiting[kind], board.free[server])
    board.given[board.marks[ROUNDS]] = (kind, server, queries)
    board.marks[ROUNDS] += 1
    board.marks[LEFT] -= queries
    board.marks[LAST] = kind
    board.waiting[kind] -= queries
    board.free[server] -= queries
    board.traffic[server] += _added_rate(board, server, kind)
    if board.free[server] == 0:
        board.roots[server] = NONE
        board.top_kind[server] = NONE
        return pool
    # Other types that read the type's sources now add less.
    for slot in range(board.indptr[kind], board.indptr[kind + 1]):
        source = board.indices[slot]
        if not is_member(board.received[source], server):
            include(board.received[source], server)
            pool = _offer_readers(board, pool, server, source)
    return pool


@compiled
def _offer_readers(board: Board, pool: Pool, server: int, source: int) -> Pool:
    """Put the waiting types that read a source into the server's heap."""
    first, last = board.reader_indptr[source], board.reader_indptr[source + 1]
    pool = heaps.with_room(pool, last - first)
    # In the loop that costs most, references to arrays are counted once.
    added_of, cells, marks = pool
    rates, indptr, indices, received = board.rates, board.indptr, board.indices, board.received
    waiting, readers, root = board.waiting, board.readers, board.roots[server]
    for entry in range(first, last):
        kind = readers[entry]
        if waiting[kind] > 0:
            added = _rate_to_add(rates, indptr, indices, received, server, kind)
            root = heaps.insert(added_of, cells, marks, root, added, waiting[kind], kind)
    board.roots[server] = root
    board.top_kind[server] = UNKNOWN
    return pool


@compiled
def _offer(board: Board, pool: Pool, server: int, kind: int) -> Pool:
    added = _added_rate(board, server, kind)
    pool, root = heaps.push(pool, board.roots[server], added, board.waiting[kind], kind)
    board.roots[server] = root
    board.top_kind[server] = UNKNOWN
    return pool


@compiled
def _refresh(board: Board, pool: Pool, server: int) -> Pool:
    """Drop entries with old keys from the top of a heap."""
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
    return _rate_to_add(board.rates, board.indptr, board.indices, board.received, server, kind)


@inlined
def _rate_to_add(
    rates: Floats, indptr: Ints, indices: SmallInts, received: Words, server: int, kind: int
) -> float:
    """Return f(Q_j with the type) - f(Q_j), summed in order of the sources: the same bits."""
    added = 0.0
    word, bit = server >> 6, np.uint64(1) << np.uint64(server & 63)
    for entry in range(indptr[kind], indptr[kind + 1]):
        source = indices[entry]
        if not received[source, word] & bit:
            added += rates[source]
    return added


@compiled
def _better_top(added: Floats, sizes: Ints, kinds: Ints, a: int, b: int) -> int:
    """Return the heap with the better top of two; one of them may be empty."""
    if kinds[a] == NONE or kinds[b] == NONE:
        return b if kinds[a] == NONE else a
    if added[a] == added[b] and sizes[a] == sizes[b]:
        return a if kinds[a] <= kinds[b] else b
    return a if heaps.is_better(added[a], sizes[a], added[b], sizes[b]) else b
