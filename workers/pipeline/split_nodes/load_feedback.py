"""The loads that nodes reported in the last finished batches."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import redis

from workers.pipeline.reports.telemetry_row import newest_telemetry
from workers.pipeline.split_nodes.batch_limits import RECENT_BATCHES, BatchLoad


@dataclass(frozen=True, slots=True)
class LoadFeedback:
    """Records that wait at all nodes, and by node its waiting records and utilisation."""

    waiting: int = 0
    signals: Mapping[str, tuple[int, float]] = field(default_factory=dict)


def read_load_feedback(client: "redis.Redis", cluster: str) -> LoadFeedback:
    """Return the loads in the newest telemetry row; nothing before the first."""
    result = newest_telemetry(client, cluster, 1)
    if not result:
        return LoadFeedback()
    row = result[0]
    nodes = row.get("nodes", [])
    signals = {
        str(node["node"]): (node.get("waiting", 0), node.get("utilisation") or 0.0)
        for node in nodes
    }
    return LoadFeedback(row.get("waiting", 0), signals)


def recent_loads(client: "redis.Redis", cluster: str) -> list[BatchLoad]:
    """Return the loads of the last batches, oldest first."""
    return [
        BatchLoad.of(row) for row in reversed(newest_telemetry(client, cluster, RECENT_BATCHES))
    ]
