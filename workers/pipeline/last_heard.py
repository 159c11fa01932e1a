"""What the nodes said of their load in the last batch that was done."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import redis

from controlplane.wire import keys


@dataclass(frozen=True, slots=True)
class Heard:
    """Records that wait at all nodes, and by node its waiting records and utilisation."""

    waiting: int = 0
    signals: Mapping[str, tuple[int, float]] = field(default_factory=dict)


def last_heard(client: "redis.Redis", cluster: str) -> Heard:
    """Return what the newest telemetry row says; nothing before the first."""
    found = cast("list[Any]", client.xrevrange(keys.telemetry_key(cluster), count=1))
    if not found:
        return Heard()
    row = json.loads(found[0][1][b"t"])
    nodes = row.get("nodes", [])
    signals = {
        str(one["node"]): (one.get("waiting", 0), one.get("utilisation") or 0.0) for one in nodes
    }
    return Heard(row.get("waiting", 0), signals)
