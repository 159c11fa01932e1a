"""The loads that nodes reported in the last finished batches."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import redis

from controlplane.wire import keys
from workers.pipeline.split_nodes.batch_limits import RECENT_BATCHES, BatchLoad


@dataclass(frozen=True, slots=True)
class LoadFeedback:
    """Records that wait at all nodes, and by node its waiting records and utilisation."""

    waiting: int = 0
    signals: Mapping[str, tuple[int, float]] = field(default_factory=dict)


def read_load_feedback(client: "redis.Redis", cluster: str) -> LoadFeedback:
    """Return the loads in the newest telemetry row; nothing before the first."""
    result = _rows(client, cluster, 1)
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
    return [BatchLoad.of(row) for row in reversed(_rows(client, cluster, RECENT_BATCHES))]


def _rows(client: "redis.Redis", cluster: str, count: int) -> list[dict[str, Any]]:
    """Return the newest telemetry rows, newest first."""
    result = cast("list[Any]", client.xrevrange(keys.telemetry_key(cluster), count=count))
    return [json.loads(fields[b"t"]) for _, fields in result]
