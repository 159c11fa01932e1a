"""Drawn snapshots, and plans on them that bring the readers of a stream together."""

from typing import Any

import numpy as np

from controlplane.planning.execution_plan import priced
from controlplane.plans.snapshot import ClusterSnapshot


def drawn(seed: int, *, nodes: int = 4, streams: int = 8, queries: int = 14) -> ClusterSnapshot:
    """Return a snapshot whose queries lie anywhere; a split query lies beside them."""
    random = np.random.default_rng(seed)
    read = [
        sorted(random.choice(streams, random.integers(1, 4), replace=False).tolist())
        for _ in range(queries)
    ]
    return ClusterSnapshot.from_json({
        "version": 3,
        "nu": 1.0,
        "nodes": [
            {"index": i, "name": f"n{i}", "capacity": 100.0 + 10 * i, "active": True}
            for i in range(nodes)
        ],
        "streams": [[one, round(float(random.uniform(1, 20)), 3)] for one in range(streams)],
        "queries": [
            [number, f"q{number}", int(random.integers(nodes)), one]
            for number, one in enumerate(read)
        ],
        "state": [[number, int(random.integers(1, 1000))] for number in range(queries)],
        "split": [
            [queries, "split", [[0, 0, 2], [1, 2, 4]], [5.0, 4.0, 3.0, 2.0], [10, 20, 30, 40]]
        ],
        "excluded": [],
    })  # fmt: skip


def gathered(snapshot: ClusterSnapshot) -> list[dict[str, Any]]:
    """Return moves of every query to the node of its first stream, and of a task, with bytes."""
    nodes = len(snapshot.nodes)
    moves = [
        {"query": query, "name": name, "from": node, "to": read[0] % nodes}
        for query, name, node, read in snapshot.queries
        if node != read[0] % nodes
    ]
    number = snapshot.split[0].id
    task = {
        "query": number,
        "name": "split",
        "first": 1,
        "past": 2,
        "from": 0,
        "to": 3,
        "bytes": 20,
    }
    return priced(snapshot, [*moves, task])
