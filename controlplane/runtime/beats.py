"""Signs of life of the processes that serve no port, kept in Redis as milliseconds since 1970."""

import time
from typing import Final, cast

import redis

EXPIRES_S: Final = 60


def beat_key(process: str) -> str:
    """Return the key of a process's last beat; `process` is agent, relay or beat."""
    return f"weir:{process}:beat"


def beat(client: "redis.Redis", process: str) -> None:
    """Record that `process` lives; raises `redis.RedisError` when Redis is away."""
    client.set(beat_key(process), time.time_ns() // 1_000_000, ex=EXPIRES_S)


def last_beat_ms(client: "redis.Redis", process: str) -> int | None:
    """Return when `process` last beat, or None if that is over a minute ago."""
    found = cast("bytes | None", client.get(beat_key(process)))
    return int(float(found)) if found else None
