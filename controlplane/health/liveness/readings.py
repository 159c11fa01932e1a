"""What Redis has about the processes of Weir, read in one round trip and kept for a second."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from django.conf import settings
from redis import RedisError

from controlplane.connections import redis_client
from controlplane.events.task_names import QUEUED_MS, QUEUES, queue_key
from controlplane.processes.runtime.beats import (
    BEATS,
    CHILDREN,
    ChildReport,
    beats_of,
    children_of,
    newest_by_kind,
    now_ms,
)
from controlplane.processes.runtime.leases import AGENTS, hosts_of, key_of
from controlplane.wire import keys
from controlplane.wire.foreign.entries import (
    SITE,
    EntryLocation,
    decoded,
    json_of,
    readable,
    values_of,
    whole,
)

# Pages and lists of executions read it repeatedly.
KEPT_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class QueueReading:
    """A Celery queue: its length, and the age of its oldest waiting task (s), None if empty."""

    name: str
    length: int
    oldest_s: float | None


@dataclass(frozen=True, slots=True)
class RedisMemory:
    """The memory of Redis and its limit in bytes; limit 0 for none."""

    used: int = 0
    limit: int = 0

    @property
    def share(self) -> float | None:
        """Return the used share of the limit, None without a limit."""
        return self.used / self.limit if self.limit else None


@dataclass(frozen=True, slots=True)
class LivenessReading:
    """One reading. `beats`: the newest heartbeat by kind (ms). `hosts`: of the agent by cluster.

    `lost_ms`: since when Redis does not respond, None while it does; the rest is empty then.
    """

    at_ms: int
    beats: dict[str, int] = field(default_factory=dict)
    children: tuple[ChildReport, ...] = ()
    queues: tuple[QueueReading, ...] = ()
    lost_ms: int | None = None
    memory: RedisMemory = field(default_factory=RedisMemory)
    hosts: dict[str, str] = field(default_factory=dict)


class _Kept:
    """The newest reading of this process."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.reading: LivenessReading | None = None
        self.url = ""
        self.until = 0.0


_KEPT: Final = _Kept()


def read_site(*, fresh: bool = False) -> LivenessReading:
    """Return a reading, at most a second old unless it must be `fresh`.

    A lost Redis is part of the reading, no error. One thread reads, the others wait for it.
    """
    with _KEPT.lock:
        same = _KEPT.url == settings.REDIS_URL
        if not fresh and same and _KEPT.reading is not None and time.monotonic() < _KEPT.until:
            return _KEPT.reading
        lost_ms = _KEPT.reading.lost_ms if _KEPT.reading is not None and same else None
        try:
            _KEPT.reading = _read()
        except (RedisError, OSError):
            at_ms = now_ms()
            _KEPT.reading = LivenessReading(at_ms, lost_ms=at_ms if lost_ms is None else lost_ms)
        _KEPT.url, _KEPT.until = settings.REDIS_URL, time.monotonic() + KEPT_S
        return _KEPT.reading


def driver_beats(slugs: Sequence[str]) -> dict[str, int]:
    """Return the last heartbeat of each cluster's driver (ms); silent ones are missing after 30 s.

    Empty if Redis does not respond.
    """
    client = redis_client()
    try:
        pipe = client.pipeline(transaction=False)
        for slug in slugs:
            pipe.hget(keys.driver_key(slug), "beat_ms")
        beats = {
            slug: decoded(client, slug, EntryLocation.HEARTBEAT, lambda ms: ms and whole(ms), value)
            for slug, value in zip(slugs, values_of(pipe), strict=True)
        }
    except (RedisError, OSError):
        return {}
    return {slug: beat_ms for slug, beat_ms in beats.items() if beat_ms}


def _read() -> LivenessReading:
    client = redis_client()
    pipe = client.pipeline(transaction=False)
    pipe.hgetall(BEATS)
    pipe.get(CHILDREN)
    for name in QUEUES:
        pipe.llen(queue_key(name))
        pipe.lindex(queue_key(name), -1)
    pipe.hgetall(key_of(AGENTS))
    pipe.info("memory")
    beats, children, *queues, leases, info = values_of(pipe)
    at_ms = now_ms()
    rows = zip(QUEUES, queues[::2], queues[1::2], strict=True)
    return LivenessReading(
        at_ms,
        newest_by_kind(beats_of(client, beats)),
        tuple(decoded(client, SITE, EntryLocation.CHILDREN, children_of, children) or ()),
        tuple(
            QueueReading(
                name,
                decoded(client, SITE, EntryLocation.TASKS, whole, length) or 0,
                next(readable(lambda message: _age_s(message, at_ms), [oldest]), None),
            )
            for name, length, oldest in rows
        ),
        hosts=hosts_of(leases if isinstance(leases, dict) else {}, at_ms),
        memory=RedisMemory(int(info["used_memory"]), int(info["maxmemory"])),
    )


def _age_s(message: bytes | None, at_ms: int) -> float | None:
    """Return the age of a waiting task, None without one or if it has no time.

    Raises `ValueError`, `TypeError` and `AttributeError` for a message of no task.
    """
    if message is None:
        return None
    queued_ms = json_of(message).get("headers", {}).get(QUEUED_MS)
    return None if queued_ms is None else max(0.0, (at_ms - whole(queued_ms)) / 1000)
