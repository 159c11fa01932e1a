"""Observation of drivers in Redis: heartbeat, progress, backlog."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import redis

from controlplane.wire import keys
from controlplane.wire.errors import LogUnavailable
from controlplane.wire.foreign.entries import EntryLocation, decoded, values_of, whole
from controlplane.wire.foreign.telemetry import newest_rows
from controlplane.wire.log import open_log
from controlplane.wire.log.values import Log, position_key
from workers.agent.causes import SIGNS


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The last heartbeat of a driver; times are milliseconds since 1970.

    `jvm_ms`: the time of the last response of its JVM, 0 before the first; `phase`: Spark's status
    of the streaming query; `note`: information for operators about a healthy driver.
    """

    pid: int
    state: str
    error: str
    beat_ms: int
    jvm_ms: int = 0
    phase: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """The observation of a cluster in Redis.

    `batch`, `version`, `end`: of the newest finished micro-batch (batch -1 before the
    first); `routed`: the newest published routing version; `steps`: the number of finished steps of
    micro-batches. `unread`: records that no finished micro-batch has read, None if the log is
    unavailable; `total`: records that finished micro-batches have read, 0 for logs outside of
    Redis; `waiting`: the backlog at nodes. `problem`: the code of the reason why Redis rejects
    writes, "" if it does not.
    """

    beat: Heartbeat | None = None
    batch: int = -1
    version: int = 0
    end: str = ""
    routed: int = 0
    steps: int = 0
    unread: int | None = 0
    total: int = 0
    waiting: int = 0
    problem: str = ""
    problem_text: str = ""

    @property
    def has_work(self) -> bool:
        """Return whether the next micro-batch has work."""
        return bool(self.unread or self.waiting or self.routed > self.version)


class Unknown(Exception):
    """Redis is unavailable."""


# Returns the observation of a cluster with a log URL (empty: the site's Redis).
Look = Callable[[str, str], Observation]


class Observer:
    """Observer of all clusters, with a cache of parsed rows: two round trips per observation."""

    def __init__(self, client: "redis.Redis", redis_url: str = "") -> None:
        self._client = client
        self._logs = _OtherLogs(redis_url)
        self._rows: dict[str, tuple[bytes, Mapping[str, Any]]] = {}

    def look(self, cluster: str, log_url: str = "") -> Observation:
        """Return the observation of a cluster. Raises `Unknown`."""
        try:
            return self._look(cluster, log_url)
        except redis.RedisError as error:
            raise Unknown(str(error)) from error

    def close(self) -> None:
        """Stop the threads that query other logs."""
        self._logs.close()

    def _look(self, cluster: str, log_url: str) -> Observation:
        pipe = self._client.pipeline(transaction=False)
        pipe.hgetall(keys.driver_key(cluster))
        pipe.xrevrange(keys.telemetry_key(cluster), count=1)
        pipe.get(keys.route_latest_key(cluster))
        pipe.hget(keys.activity_key(cluster), "steps")
        pipe.xrevrange(keys.index_key(cluster), count=1)
        driver, telemetry, latest, steps, index = values_of(pipe)
        row = self._row(cluster, telemetry)
        end = row.get("end") or ""
        batch = row.get("batch", -1)
        unread: int | None
        if log_url:
            unread, total = self._logs.unread(cluster, log_url, batch), 0
        else:
            reading = (EntryLocation.LOG, lambda value: self._unread(cluster, value, end), index)
            unread, total = decoded(self._client, cluster, *reading) or (None, 0)
        beat = decoded(self._client, cluster, EntryLocation.HEARTBEAT, heartbeat_of, driver)
        routed = decoded(self._client, cluster, EntryLocation.ROUTING, _number, latest) or 0
        finished = decoded(self._client, cluster, EntryLocation.HEARTBEAT, _number, steps) or 0
        problem, text = self._refusal(cluster)
        return Observation(
            beat, batch, row.get("version", 0), end, routed, finished, unread, total,
            row.get("waiting") or 0, problem, text,
        )  # fmt: skip

    def _row(self, cluster: str, telemetry: Any) -> Mapping[str, Any]:
        """Return the newest readable row; the relay counts the others."""
        if not telemetry or isinstance(telemetry, Exception):
            return {}
        name = telemetry[0][0]
        known = self._rows.get(cluster)
        if known is None or known[0] != name:
            rows = newest_rows(self._client, cluster, 1)
            self._rows[cluster] = known = name, rows[0] if rows else {}
        return known[1]

    def _unread(self, cluster: str, index: list[Any], end: str) -> tuple[int, int]:
        """Return the numbers of records after and before the end of the newest micro-batch.

        Independent of commits: Spark commits a batch when it plans the next one.
        """
        if not index:
            return 0, 0
        newest, fields = index[0]
        total, key = whole(fields[b"total"]), keys.index_key(cluster)
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
        """Return why Redis rejects a write, as a code and as Redis' message."""
        try:
            self._client.hset(keys.activity_key(cluster), "looked", 1)
        except (redis.ResponseError, redis.exceptions.ReadOnlyError) as error:
            text = str(error)
            known = (code for sign, code in SIGNS if code.startswith("redis-") and sign in text)
            return next(known, "redis"), text
        return "", ""


def _number(value: bytes | None) -> int:
    return whole(value or 0)


def heartbeat_of(row: Mapping[bytes, bytes]) -> Heartbeat | None:
    """Return the heartbeat in a driver's hash, None without one. Raises `ValueError`."""
    if b"pid" not in row or b"beat_ms" not in row:
        return None
    state, error, phase, note = (
        # Of a length and with characters that the database stores.
        row.get(name, b"").decode("utf-8", "replace").replace("\0", "?")[:500]
        for name in (b"state", b"error", b"phase", b"note")
    )
    beat_ms, jvm_ms = whole(row[b"beat_ms"]), _number(row.get(b"jvm_ms"))
    return Heartbeat(whole(row[b"pid"]), state, error, beat_ms, jvm_ms, phase, note)


class _OtherLogs:
    """The backlog of logs outside of the site's Redis, which threads query.

    Such a log commits a batch when the next one is planned, and may estimate counts. So records
    since the first response after a batch count as unread.
    """

    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="backlog")
        self._logs: dict[tuple[str, str], Log] = {}
        self._queries: dict[str, Future[int]] = {}
        self._known: dict[str, int | None] = {}
        self._floor: dict[str, tuple[int, int]] = {}

    def unread(self, cluster: str, url: str, batch: int) -> int | None:
        """Return the newest response, None without one; does not block."""
        query = self._queries.get(cluster)
        if query is None:
            self._queries[cluster] = self._threads.submit(self._query, cluster, url)
        elif query.done():
            self._known[cluster] = None if query.exception() else query.result()
            self._queries[cluster] = self._threads.submit(self._query, cluster, url)
        known = self._known.get(cluster)
        if known is None:
            return None
        offset, floor = self._floor.get(cluster, (batch, known))
        floor = min(floor, known) if offset == batch else known
        self._floor[cluster] = batch, floor
        return known - floor

    def close(self) -> None:
        """Stop the threads without waiting for queries in progress."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _query(self, cluster: str, url: str) -> int:
        if (cluster, url) not in self._logs:
            self._logs[cluster, url] = open_log(url, cluster, self._redis_url)
        try:
            return self._logs[cluster, url].waiting().records
        except LogUnavailable:
            self._logs.pop((cluster, url)).close()
            raise
