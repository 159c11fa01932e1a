"""The greedy order of the moves of a plan, as one compiled loop over flat arrays.

Moves with the same source and target node form a *bucket*, a binary heap by the load that each
move would add to the target. A bucket is *ready* while its least addition fits: then the worst
loaded node with a ready bucket makes its next move. A move changes the loads of two nodes, so only
the buckets into these two are examined again: a step takes time in proportion to the number of
nodes, whatever the number of moves.

What a move adds changes only when the target receives its first reader of a source or loses the
last one. A unit moves once, so each of the two happens at most once for a node and a source: all
additions together are computed again at most twice per move and source.
"""

from typing import Final, NamedTuple

import numpy as np

from algorithms.balance import imbalance
from algorithms.compiled import compiled
from algorithms.ordering.problem import SLACK, MoveSet, Order
from algorithms.rows import group_positions
from algorithms.vocabulary import Flags, Floats, Ints

NONE: Final = -1


class GreedyState(NamedTuple):
    """Nodes, buckets and moves; k nodes, b buckets, n moves.

    `moves`: with the loads and readers of now; `limit` float64[1]: a safe move leaves its target
    at most at this load/capacity. Moves of a source to a spot by rows `spot_indptr`, `spot_moves`.
    `added` float64[n]: load at the target; `bucket_of` int64[n]; `place` int64[n]: position in
    `heap` int64[n], -1 once made. Buckets: `first`, `size` int64[b] of `heap`; `origin` int64[b]:
    source node; `ready` bool[b]. Buckets into a node are `into[t]:into[t + 1]`; those out of one
    are rows `out_indptr`, `out_buckets`. `ready_out` int64[k]: ready buckets out of each node;
    `least` int64[k]: the bucket into each node with the least addition, -1 if all are empty.
    """

    moves: MoveSet
    limit: Floats
    spot_indptr: Ints
    spot_moves: Ints
    added: Floats
    bucket_of: Ints
    place: Ints
    heap: Ints
    first: Ints
    size: Ints
    origin: Ints
    ready: Flags
    into: Ints
    out_indptr: Ints
    out_buckets: Ints
    ready_out: Ints
    least: Ints


def order_moves(moves: MoveSet) -> Order:
    """Order moves greedily; the operator can stop after each.

    Among the moves after which the target is not worse off than the worst node at the beginning,
    those of the worst loaded node come first, and of these the one whose target has the least
    load/capacity then. Where there is none, the move that does least harm is next: some plans have
    no safe order, as when two full nodes swap.
    """
    start = float((moves.loads / moves.capacities).max(initial=0.0))
    order = np.empty(len(moves.targets), np.int64)
    imbalance, worst = np.empty(len(moves.targets)), np.empty(len(moves.targets))
    if len(moves.targets):
        board = _lay_out(moves, start + SLACK)
        _fill(board)
        _play(board, order, imbalance, worst)
    safe = bool((worst <= start + SLACK).all())
    return Order(tuple(order.tolist()), imbalance, worst, start, safe)


def _lay_out(moves: MoveSet, limit: float) -> GreedyState:
    nodes, count = len(moves.loads), len(moves.targets)
    keys, bucket_of = np.unique(moves.targets * nodes + moves.sources, return_inverse=True)
    place = np.empty(count, np.int64)
    place[np.argsort(bucket_of, kind="stable")] = np.arange(count)
    size = np.bincount(bucket_of, minlength=len(keys)).astype(np.int64)
    origin = keys % nodes
    spot_indptr, entries = group_positions(moves.coming, len(moves.readers))
    out_indptr, out_buckets = group_positions(origin, nodes)
    return GreedyState(
        moves=moves._replace(loads=moves.loads.copy(), readers=moves.readers.copy()),
        limit=np.array([limit]),
        spot_indptr=spot_indptr,
        spot_moves=np.repeat(np.arange(count), np.diff(moves.indptr))[entries],
        added=np.zeros(count),
        bucket_of=bucket_of,
        place=place,
        heap=np.empty(count, np.int64),
        first=np.cumsum(size) - size,
        size=size,
        origin=origin,
        ready=np.zeros(len(keys), np.bool_),
        into=np.searchsorted(keys, np.arange(nodes + 1) * nodes),
        out_indptr=out_indptr,
        out_buckets=out_buckets,
        ready_out=np.zeros(nodes, np.int64),
        least=np.full(nodes, NONE, np.int64),
    )


@compiled
def _fill(board: GreedyState) -> None:
    """Compute the load that every move adds, and build the heaps."""
    for move in range(len(board.moves.targets)):
        board.added[move] = _addition(board, move)
        _place(board, board.place[move], move)
    for bucket in range(len(board.first)):
        for position in range(board.size[bucket] // 2 - 1, -1, -1):
            _sink(board, bucket, position)
    for node in range(len(board.moves.loads)):
        _examine(board, node)


_imbalance = compiled(imbalance)


@compiled
def _play(board: GreedyState, order: Ints, imbalance: Floats, worst: Floats) -> None:
    """Make all moves; write their order, and the balance after each."""
    loads, capacities = board.moves.loads, board.moves.capacities
    for step in range(len(order)):
        bucket = _safe_bucket(board)
        if bucket == NONE:
            bucket = _least_harm(board)
        move = board.heap[board.first[bucket]]
        _make(board, bucket, move)
        order[step] = move
        shares = loads / capacities
        worst[step] = shares.max()
        imbalance[step] = _imbalance(shares)


@compiled
def _safe_bucket(board: GreedyState) -> int:
    """Return a ready bucket out of the worst loaded node that has one, -1 if none is ready.

    Of its ready buckets the one after whose move the target has the least load/capacity.
    """
    worst, largest = NONE, -1.0
    for node in range(len(board.moves.loads)):
        if board.ready_out[node]:
            share = board.moves.loads[node] / board.moves.capacities[node]
            if share > largest:
                worst, largest = node, share
    if worst == NONE:
        return NONE
    best, least = NONE, np.inf
    for entry in range(board.out_indptr[worst], board.out_indptr[worst + 1]):
        bucket = board.out_buckets[entry]
        if board.ready[bucket]:
            share = _share_after(board, bucket)
            if share < least:
                best, least = bucket, share
    return best


@compiled
def _least_harm(board: GreedyState) -> int:
    """Return the bucket after whose move the target has the least load/capacity."""
    best, least = NONE, np.inf
    for node in range(len(board.moves.loads)):
        bucket = board.least[node]
        if bucket != NONE:
            share = _share_after(board, bucket)
            if share < least:
                best, least = bucket, share
    return best


@compiled
def _share_after(board: GreedyState, bucket: int) -> float:
    """Return the load/capacity of the target after the bucket's next move."""
    move = board.heap[board.first[bucket]]
    target = board.moves.targets[move]
    return float((board.moves.loads[target] + board.added[move]) / board.moves.capacities[target])


@compiled
def _make(board: GreedyState, bucket: int, move: int) -> None:
    """Make the first move of a bucket."""
    _remove_first(board, bucket)
    source, target = board.moves.sources[move], board.moves.targets[move]
    for entry in range(board.moves.indptr[move], board.moves.indptr[move + 1]):
        spot = board.moves.leaving[entry]
        board.moves.readers[spot] -= 1
        if board.moves.readers[spot] == 0:
            board.moves.loads[source] -= board.moves.rates[entry]
            _add_again(board, spot)
        spot = board.moves.coming[entry]
        board.moves.readers[spot] += 1
        if board.moves.readers[spot] == 1:
            board.moves.loads[target] += board.moves.rates[entry]
            _add_again(board, spot)
    _examine(board, source)
    _examine(board, target)


@compiled
def _add_again(board: GreedyState, spot: int) -> None:
    """Compute again the load that the remaining moves of a source to this spot add."""
    for entry in range(board.spot_indptr[spot], board.spot_indptr[spot + 1]):
        move = board.spot_moves[entry]
        if board.place[move] == NONE:
            continue
        board.added[move] = _addition(board, move)
        bucket = board.bucket_of[move]
        _rise(board, bucket, board.place[move] - board.first[bucket])
        _sink(board, bucket, board.place[move] - board.first[bucket])


@compiled
def _addition(board: GreedyState, move: int) -> float:
    added = 0.0
    for entry in range(board.moves.indptr[move], board.moves.indptr[move + 1]):
        if board.moves.readers[board.moves.coming[entry]] == 0:
            added += float(board.moves.rates[entry])
    return added


@compiled
def _examine(board: GreedyState, node: int) -> None:
    """Find which buckets into a node are ready, and which adds least."""
    board.least[node] = NONE
    best = np.inf
    for bucket in range(board.into[node], board.into[node + 1]):
        ready = False
        if board.size[bucket]:
            added = board.added[board.heap[board.first[bucket]]]
            if added < best:
                best = added
                board.least[node] = bucket
            share = (board.moves.loads[node] + added) / board.moves.capacities[node]
            ready = share <= board.limit[0]
        if ready != board.ready[bucket]:
            board.ready[bucket] = ready
            board.ready_out[board.origin[bucket]] += 1 if ready else -1


@compiled
def _place(board: GreedyState, position: int, move: int) -> None:
    board.heap[position] = move
    board.place[move] = position


@compiled
def _precedes(board: GreedyState, a: int, b: int) -> bool:
    """Return whether a move adds less than another; of equals, the first given one."""
    if board.added[a] != board.added[b]:
        return bool(board.added[a] < board.added[b])
    return a < b


@compiled
def _remove_first(board: GreedyState, bucket: int) -> None:
    first = board.first[bucket]
    last = first + board.size[bucket] - 1
    board.place[board.heap[first]] = NONE
    board.size[bucket] -= 1
    if last > first:
        _place(board, first, board.heap[last])
        _sink(board, bucket, 0)


@compiled
def _rise(board: GreedyState, bucket: int, position: int) -> None:
    first = board.first[bucket]
    move = board.heap[first + position]
    while position > 0:
        parent = (position - 1) // 2
        if not _precedes(board, move, board.heap[first + parent]):
            break
        _place(board, first + position, board.heap[first + parent])
        position = parent
    _place(board, first + position, move)


@compiled
def _sink(board: GreedyState, bucket: int, position: int) -> None:
    first, size = board.first[bucket], board.size[bucket]
    move = board.heap[first + position]
    while 2 * position + 1 < size:
        child = 2 * position + 1
        if child + 1 < size and _precedes(
            board, board.heap[first + child + 1], board.heap[first + child]
        ):
            child += 1
        if not _precedes(board, board.heap[first + child], move):
            break
        _place(board, first + position, board.heap[first + child])
        position = child
    _place(board, first + position, move)
