"""The loads of nodes after the newest batch, for the planning of the next one."""

from dataclasses import dataclass, field

import redis

from workers.pipeline.reports.telemetry_row import newest_telemetry
from workers.pipeline.routing.key_grouping import BacklogLoad, NodeLoads


@dataclass(frozen=True, slots=True)
class LoadFeedback:
    """Records that wait at all nodes, and by node its waiting records and utilisation."""

    waiting: int = 0
    loads: NodeLoads = field(default_factory=dict)


def read_load_feedback(client: "redis.Redis", cluster: str) -> LoadFeedback:
    """Return the loads in the newest telemetry row; nothing before the first."""
    result = newest_telemetry(client, cluster, 1)
    if not result:
        return LoadFeedback()
    row = result[0]
    nodes = row.get("nodes", [])
    loads = {
        int(node["node"]): BacklogLoad(
            int(node.get("waiting") or 0), node.get("utilisation") or 0.0
        )
        for node in nodes
    }
    return LoadFeedback(int(row.get("waiting") or 0), loads)
