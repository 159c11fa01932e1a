"""Reading the heartbeats that drivers write to Redis."""

from dataclasses import dataclass
from typing import cast

import redis

from controlplane.wire import keys


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a driver last said of itself; times are milliseconds since 1970."""

    pid: int
    state: str
    error: str
    beat_ms: int


class Unknown(Exception):
    """Redis does not answer: nothing can be said about any heartbeat."""


def read_heartbeat(client: "redis.Redis", cluster: str) -> Heartbeat | None:
    """Return the heartbeat of a cluster's driver, None without one. Raises `Unknown`."""
    try:
        row = cast("dict[bytes, bytes]", client.hgetall(keys.driver_key(cluster)))
    except redis.RedisError as error:
        raise Unknown(str(error)) from error
    if b"pid" not in row or b"beat_ms" not in row:
        return None
    return Heartbeat(
        pid=int(row[b"pid"]),
        state=row.get(b"state", b"").decode(),
        error=row.get(b"error", b"").decode("utf-8", "replace"),
        beat_ms=int(row[b"beat_ms"]),
    )
