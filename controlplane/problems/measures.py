"""What an assignment costs: a snapshot as it is, or after some moves."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

Row = Mapping[str, Any]


def measures(snapshot: Row, moves: Iterable[Row] = ()) -> dict[str, Any]:
    """Return the measures of the snapshot after these moves.

    {replication_factor, traffic, loads, rates, imbalance, max_load}: traffic and rates in
    records/s received, a stream once per node, and what tasks of split queries take; loads in
    queries and tasks per node, nodes in the order of the snapshot. The replication factor is that
    of the queries of one task.
    """
    nodes = snapshot["nodes"]
    place = {node["index"]: at for at, node in enumerate(nodes)}
    moved = _targets(moves)
    received, loads = _of_queries(snapshot, place, moved)
    rates = np.array([rate for _, rate in snapshot["streams"]], np.float64)
    per_node = (received * rates).sum(axis=1) if len(rates) else np.zeros(len(nodes))
    traffic, live = float(per_node.sum()), float(rates[received.any(axis=0)].sum())
    work, tasks = _of_tasks(snapshot, place, moved)
    total = per_node + work
    shares = total / np.array([node["capacity"] for node in nodes])
    return {
        "replication_factor": traffic / live if live else None,
        "traffic": float(total.sum()),
        "loads": (loads + tasks).tolist(),
        "rates": total.tolist(),
        "imbalance": float(shares.max() - shares.mean()) if len(nodes) else 0.0,
        "max_load": int((loads + tasks).max(initial=0)),
    }


def _targets(moves: Iterable[Row]) -> dict[tuple[int, int], int]:
    """Return the node index of every task that moves, by query and task."""
    return {
        (move["query"], task): move["to"]
        for move in moves
        for task in range(move.get("first", 0), move.get("past", 1))
    }


def _of_queries(
    snapshot: Row, place: Mapping[int, int], moved: Mapping[tuple[int, int], int]
) -> tuple[Any, Any]:
    """Return which streams each node receives, bool[nodes, streams], and its queries."""
    source = {stream: at for at, (stream, _) in enumerate(snapshot["streams"])}
    received = np.zeros((len(place), len(source)), np.bool_)
    at = [place[moved.get((query, 0), node)] for query, _, node, _ in snapshot["queries"]]
    reads = [[source[one] for one in streams] for _, _, _, streams in snapshot["queries"]]
    if reads:
        rows = np.repeat(at, [len(one) for one in reads])
        received[rows, np.concatenate([np.array(one, np.int64) for one in reads])] = True
    return received, np.bincount(np.array(at, np.int64), minlength=len(place))


def _of_tasks(
    snapshot: Row, place: Mapping[int, int], moved: Mapping[tuple[int, int], int]
) -> tuple[Any, Any]:
    """Return the records/s that tasks of split queries take on each node, and their number."""
    work, count = np.zeros(len(place)), np.zeros(len(place), np.int64)
    for query, _, spans, works, _ in snapshot["split"]:
        for node, first, past in spans:
            for task in range(first, past):
                at = place[moved.get((query, task), node)]
                work[at] += works[task]
                count[at] += 1
    return work, count
