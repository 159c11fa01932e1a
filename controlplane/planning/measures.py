"""What an assignment costs: a snapshot as it is, or after some moves."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from controlplane.planning import arrays
from controlplane.planning.arrays import QueryArrays
from controlplane.planning.snapshot import ClusterSnapshot

Row = Mapping[str, Any]


def measures(snapshot: ClusterSnapshot, moves: Iterable[Row] = ()) -> dict[str, Any]:
    """Return the measures of the snapshot after these moves.

    {replication_factor, traffic, loads, rates, imbalance, max_load}: traffic and rates in
    records/s received, a stream once per node, and what tasks of split queries take; loads in
    queries and tasks per node, nodes in the order of the snapshot. The replication factor is that
    of the queries of one task.
    """
    moved, nodes = list(moves), len(snapshot.nodes)
    rates = arrays.rates_of(snapshot)
    queries = QueryArrays.of(snapshot).after(snapshot, moved)
    received = queries.readers(nodes, len(rates)) > 0
    per_node = received @ rates
    traffic, live = float(per_node.sum()), float(rates[received.any(axis=0)].sum())
    work, tasks = _of_tasks(snapshot, moved)
    loads = np.bincount(queries.nodes, minlength=nodes) + tasks
    total = per_node + work
    shares = total / arrays.capacities_of(snapshot)
    return {
        "replication_factor": traffic / live if live else None,
        "traffic": float(total.sum()),
        "loads": loads.tolist(),
        "rates": total.tolist(),
        "imbalance": float(shares.max() - shares.mean()) if nodes else 0.0,
        "max_load": int(loads.max(initial=0)),
    }


def _of_tasks(snapshot: ClusterSnapshot, moves: Sequence[Row]) -> tuple[Any, Any]:
    """Return the records/s that tasks of split queries take on each node, and their number."""
    place = {node.index: at for at, node in enumerate(snapshot.nodes)}
    work, count = np.zeros(len(place)), np.zeros(len(place), np.int64)
    moved = _targets(snapshot, moves)
    for query, _, spans, works, _ in snapshot.split:
        for node, first, past in spans:
            for task in range(first, past):
                at = place[moved.get((query, task), node)]
                work[at] += works[task]
                count[at] += 1
    return work, count


def _targets(snapshot: ClusterSnapshot, moves: Sequence[Row]) -> dict[tuple[int, int], int]:
    """Return the node index of every task of a split query that moves, by query and task."""
    split = {query for query, *_ in snapshot.split}
    if not split:
        return {}
    return {
        (move["query"], task): move["to"]
        for move in moves
        if move["query"] in split
        for task in range(move.get("first", 0), move.get("past", 1))
    }
