"""Drawn snapshots, and plans on them that bring the readers of a stream together."""

import numpy as np

from controlplane.planning.resolution import resolve
from controlplane.plans.plan import PlannedAction
from controlplane.plans.snapshot import EMPTY, ClusterSnapshot
from controlplane.wire.routing.query_actions import MoveTasks


def drawn(seed: int, *, nodes: int = 4, streams: int = 8, queries: int = 14) -> ClusterSnapshot:
    """Return a snapshot whose queries lie anywhere; a split query lies beside them."""
    random = np.random.default_rng(seed)
    read = [
        sorted(random.choice(streams, random.integers(1, 4), replace=False).tolist())
        for _ in range(queries)
    ]
    return ClusterSnapshot.from_json(EMPTY.to_json() | {
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
            [queries, "split", [[0, 0, 2], [1, 2, 4]], [5.0, 4.0, 3.0, 2.0], [10, 20, 30, 40],
             [0, streams - 1]]
        ],
        "excluded": [],
        "splits": [[one, one % 2] for one in range(streams)],
        "split_count": 2,
    })  # fmt: skip


def gathered(snapshot: ClusterSnapshot) -> list[PlannedAction]:
    """Return moves of every query to the node of its first stream, and of a task."""
    nodes = len(snapshot.nodes)
    moves = [MoveTasks(query, ((read[0] % nodes, 0, 1),)) for query, _, _, read in snapshot.queries]
    return resolve(snapshot, [*moves, MoveTasks(snapshot.split[0].id, ((3, 1, 2),))])
