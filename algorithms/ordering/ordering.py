"""The order of the moves of a plan."""

import numpy as np

from algorithms.ordering import greedy
from algorithms.ordering.problem import SLACK, MoveSet, Order
from algorithms.rows import grouped


def order_moves(moves: MoveSet) -> Order:
    """Order moves greedily; the operator can stop after each.

    Among the moves after which the target is no worse off than the worst node at the beginning,
    those of the worst loaded node come first, and of these the one whose target has the least
    load/capacity then. Where there is none, the move that does least harm is next: some plans have
    no safe order, as when two full nodes swap.
    """
    start = float((moves.loads / moves.capacities).max(initial=0.0))
    order = np.empty(len(moves), np.int64)
    imbalance, worst = np.empty(len(moves)), np.empty(len(moves))
    if len(moves):
        board = _laid_out(moves, start + SLACK)
        greedy.fill(board)
        greedy.play(board, order, imbalance, worst)
    safe = bool((worst <= start + SLACK).all())
    return Order(tuple(order.tolist()), imbalance, worst, start, safe)


def _laid_out(moves: MoveSet, limit: float) -> greedy.Board:
    nodes, count = len(moves.loads), len(moves)
    keys, bucket_of = np.unique(moves.targets * nodes + moves.sources, return_inverse=True)
    place = np.empty(count, np.int64)
    place[np.argsort(bucket_of, kind="stable")] = np.arange(count)
    size = np.bincount(bucket_of, minlength=len(keys)).astype(np.int64)
    origin = keys % nodes
    spot_indptr, entries = grouped(moves.coming, len(moves.readers))
    out_indptr, out_buckets = grouped(origin, nodes)
    return greedy.Board(
        loads=moves.loads.copy(),
        capacities=moves.capacities,
        limit=np.array([limit]),
        readers=moves.readers.copy(),
        sources=moves.sources,
        targets=moves.targets,
        own=moves.own,
        indptr=moves.indptr,
        leaving=moves.leaving,
        coming=moves.coming,
        rates=moves.rates,
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
        least=np.full(nodes, greedy.NONE, np.int64),
    )
