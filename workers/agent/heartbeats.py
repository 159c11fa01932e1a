"""Reading what a driver and its batches have written to Redis: heartbeat, progress, backlog."""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import redis

from controlplane.wire import keys
from controlplane.wire.errors import LogUnavailable
from controlplane.wire.log import Log, open_log
from controlplane.wire.log.values import position_key

# What Redis answers to a write that it does not take, and the code of each.
_REFUSALS: Final[Mapping[str, str]] = {
    "command not allowed when used memory": "redis-memory",
    "MISCONF": "redis-disk",
    "READONLY": "redis-read-only",
}


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a driver last reported of itself; times are milliseconds since 1970.

    jvm_ms: when its JVM last answered, 0 before the first answer; phase: what the streaming query
    does, in Spark's words; note: what operators should know although all is well.
    """

    pid: int
    state: str
    error: str
    beat_ms: int
    jvm_ms: int = 0
    phase: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What Redis shows of one cluster.

    `batch`, `version`, `end` and `emitted_ms` are those of the newest finished micro-batch (batch
    -1 before the first); `routed`: the newest published routing version; `steps`: counts the
    finished steps of micro-batches. `unread`: records that no finished micro-batch has read, None
    where the log does not answer; `total`: records of the log that finished ones have read, 0 where
    only the log knows; `waiting`: records that wait at nodes. `problem`: why Redis does
    not take writes, as a code, empty if it does.
    """

    beat: Heartbeat | None = None
    batch: int = -1
    version: int = 0
    end: str = ""
    emitted_ms: int = 0
    routed: int = 0
    steps: int = 0
    unread: int | None = 0
    total: int = 0
    waiting: int = 0
    generation: str = ""
    problem: str = ""
    problem_text: str = ""

    @property
    def work(self) -> bool:
        """Return whether there is something that the next micro-batch has to do."""
        return bool(self.unread or self.waiting or self.routed > self.version)


class Unknown(Exception):
    """Redis does not answer: the heartbeats are unknown."""


# Returns what is seen of a cluster, whose log is at a URL (empty: in the site's Redis).
Look = Callable[[str, str], Seen]


class Observer:
    """Looks at all clusters; keeps what it has parsed, so that a look costs two round trips."""

    def __init__(self, client: "redis.Redis", redis_url: str = "") -> None:
        self._client = client
        self._logs = _OtherLogs(redis_url)
        self._rows: dict[str, tuple[bytes, Mapping[str, Any]]] = {}

    def look(self, cluster: str, log_url: str = "") -> Seen:
        """Return what Redis shows of a cluster. Raises `Unknown`."""
        try:
            return self._look(cluster, log_url)
        except redis.RedisError as error:
            raise Unknown(str(error)) from error

    def close(self) -> None:
        """End the threads that ask other logs."""
        self._logs.close()

    def _look(self, cluster: str, log_url: str) -> Seen:
        pipe = self._client.pipeline(transaction=False)
        pipe.hgetall(keys.driver_key(cluster))
        pipe.xrevrange(keys.telemetry_key(cluster), count=1)
        pipe.get(keys.route_latest_key(cluster))
        pipe.hget(keys.activity_key(cluster), "steps")
        pipe.hget(keys.generation_key(cluster), "id")
        pipe.xrevrange(keys.index_key(cluster), count=1)
        driver, telemetry, latest, steps, generation, index = pipe.execute()
        row = self._row(cluster, telemetry)
        end = row.get("end") or ""
        batch = int(row.get("batch", -1))
        unread: int | None
        if log_url:
            unread, total = self._logs.unread(cluster, log_url, batch), 0
        else:
            unread, total = self._unread(cluster, index, end)
        problem, text = self._refusal(cluster)
        return Seen(
            heartbeat_of(driver), batch, int(row.get("version", 0)), end,
            int(row.get("emitted_ms", 0)), int(latest or 0), int(steps or 0), unread, total,
            int(row.get("waiting", 0)), (generation or b"").decode(), problem, text,
        )  # fmt: skip

    def _row(self, cluster: str, telemetry: list[Any]) -> Mapping[str, Any]:
        if not telemetry:
            return {}
        name, fields = telemetry[0]
        known = self._rows.get(cluster)
        if known is None or known[0] != name:
            self._rows[cluster] = known = name, json.loads(fields[b"t"])
        return known[1]

    def _unread(self, cluster: str, index: list[Any], end: str) -> tuple[int, int]:
        """Return the records behind the end of the newest micro-batch, and those up to it.

        Not from what is marked as committed: Spark commits a batch when it plans the next one.
        """
        if not index:
            return 0, 0
        newest, fields = index[0]
        total, key = int(fields[b"total"]), keys.index_key(cluster)
        if end and position_key(newest.decode()) <= position_key(end):
            return 0, total
        before: Any = self._client.xrevrange(key, end, "-", count=1) if end else []
        if before:
            read = int(before[0][1][b"total"])
        else:
            first: Any = self._client.xrange(key, f"({end}" if end else "-", "+", count=1)
            read = int(first[0][1][b"total"]) - int(first[0][1][b"n"]) if first else total
        return total - read, read

    def _refusal(self, cluster: str) -> tuple[str, str]:
        """Return why Redis does not take a write, as a code and in its own words."""
        try:
            self._client.hset(keys.activity_key(cluster), "looked", 1)
        except (redis.ResponseError, redis.exceptions.ReadOnlyError) as error:
            text = str(error)
            code = next((code for sign, code in _REFUSALS.items() if sign in text), "redis")
            return code, text
        return "", ""


def heartbeat_of(row: Mapping[bytes, bytes]) -> Heartbeat | None:
    """Return the heartbeat in a driver's hash, None without one."""
    if b"pid" not in row or b"beat_ms" not in row:
        return None
    return Heartbeat(
        pid=int(row[b"pid"]),
        state=row.get(b"state", b"").decode(),
        error=row.get(b"error", b"").decode("utf-8", "replace"),
        beat_ms=int(row[b"beat_ms"]),
        jvm_ms=int(row.get(b"jvm_ms", 0)),
        phase=row.get(b"phase", b"").decode("utf-8", "replace"),
        note=row.get(b"note", b"").decode("utf-8", "replace"),
    )


class _OtherLogs:
    """What is unread in logs outside of the site's Redis, asked in threads.

    Such a log marks a batch as read when the next one is planned, and may count by estimate. So
    what counts as unread is what came since the first answer after a batch.
    """

    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="backlog")
        self._logs: dict[tuple[str, str], Log] = {}
        self._asked: dict[str, Future[int]] = {}
        self._known: dict[str, int | None] = {}
        self._floor: dict[str, tuple[int, int]] = {}

    def unread(self, cluster: str, url: str, batch: int) -> int | None:
        """Return the newest answer, None without one; never waits."""
        asked = self._asked.get(cluster)
        if asked is None:
            self._asked[cluster] = self._threads.submit(self._ask, cluster, url)
        elif asked.done():
            self._known[cluster] = None if asked.exception() else asked.result()
            self._asked[cluster] = self._threads.submit(self._ask, cluster, url)
        known = self._known.get(cluster)
        if known is None:
            return None
        offset, floor = self._floor.get(cluster, (batch, known))
        floor = min(floor, known) if offset == batch else known
        self._floor[cluster] = batch, floor
        return known - floor

    def close(self) -> None:
        """Stop asking; a question that is in progress is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, cluster: str, url: str) -> int:
        if (cluster, url) not in self._logs:
            self._logs[cluster, url] = open_log(url, cluster, self._redis_url)
        try:
            return self._logs[cluster, url].waiting().records
        except LogUnavailable:
            self._logs.pop((cluster, url)).close()
            raise
