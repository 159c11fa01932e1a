"""Facts about Redis, checkpoint and database of a cluster, for the comparison."""

import json
from typing import Any

from controlplane.connections import redis_client
from controlplane.health.losses.detection import (
    CheckpointFacts,
    DatabaseFacts,
    Facts,
    RedisFacts,
)
from controlplane.models import Cluster, ClusterHealth
from controlplane.wire import keys
from controlplane.wire.generation import read_generation
from controlplane.wire.routing.publication import latest_version


def facts_of(cluster: Cluster, checkpoint: CheckpointFacts | None, name: str) -> Facts:
    """Return the facts of all three; `name`: the checkpoint's. Raises `redis.RedisError`.

    Redis is read before the database, so a change in between is in neither or in both.
    """
    redis = _redis_facts(cluster.slug)
    return Facts(redis, _database_facts(cluster.pk, name), checkpoint)


def _redis_facts(slug: str) -> RedisFacts:
    client = redis_client()
    newest: Any = client.xrevrange(keys.telemetry_key(slug), count=1)
    row: dict[str, Any] = json.loads(newest[0][1][b"t"]) if newest else {}
    batch = int(row.get("batch", -1))
    sink: Any = client.hget(keys.activity_key(slug), "sink")
    half = int(sink) if sink is not None and int(sink) > batch else None
    generation, version = read_generation(client, slug), latest_version(client, slug)
    return RedisFacts(generation, batch, version or 0, half, row.get("event_ms"))


def _database_facts(pk: int, name: str) -> DatabaseFacts:
    version = Cluster.objects.values_list("routing_version", flat=True).get(pk=pk)
    health = ClusterHealth.objects.filter(cluster=pk).first()
    if health is None:
        return DatabaseFacts(version=version)
    batch = -1 if health.batch is None else health.batch
    seen = bool(health.checkpoint) and health.checkpoint == name
    return DatabaseFacts(health.generation, batch, version, seen, health.unread)
