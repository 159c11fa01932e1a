"""Heartbeats of processes that serve no port, stored in Redis as milliseconds since 1970."""

import time
from collections.abc import Mapping
from typing import Final, cast

import redis

EXPIRES_S: Final = 60
AGENT_CLUSTERS: Final = "weir:agent:clusters"


def beat_key(process: str) -> str:
    """Return the key of a process's last beat; `process` is agent, relay or beat."""
    return f"weir:{process}:beat"


def beat(client: "redis.Redis", process: str) -> None:
    """Record that `process` runs. Raises `redis.RedisError`."""
    client.set(beat_key(process), time.time_ns() // 1_000_000, ex=EXPIRES_S)


def last_beat_ms(client: "redis.Redis", process: str) -> int | None:
    """Return the time of the last heartbeat of `process`, None if it is over a minute old."""
    value = cast("bytes | None", client.get(beat_key(process)))
    return int(float(value)) if value else None


def record_clusters(client: "redis.Redis", states: Mapping[str, str]) -> None:
    """Replace the recorded states of the agent's clusters."""
    pipe = client.pipeline()
    pipe.delete(AGENT_CLUSTERS)
    if states:
        pipe.hset(AGENT_CLUSTERS, mapping={str(slug): str(s) for slug, s in states.items()})
        pipe.expire(AGENT_CLUSTERS, EXPIRES_S)
    pipe.execute()


def cluster_states(client: "redis.Redis") -> dict[str, str]:
    """Return the state of every cluster of the agent by slug."""
    value = cast("dict[bytes, bytes]", client.hgetall(AGENT_CLUSTERS))
    return {slug.decode(): state.decode() for slug, state in value.items()}
