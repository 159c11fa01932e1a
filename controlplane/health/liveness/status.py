"""The status of Weir's own processes: which is silent since when, and what that holds up."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Literal

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection

from controlplane.health.liveness.readings import (
    LivenessReading,
    QueueReading,
    RedisMemory,
    driver_beats,
    read_site,
)
from controlplane.models import Cluster
from controlplane.numbers import percent
from controlplane.processes.runtime.beats import ChildReport
from controlplane.processes.runtime.process_kinds import (
    DRIVER,
    EXECUTION,
    PROCESSES,
    REPLAYER,
    WEB,
    WORKER,
    ProcessKind,
)

State = Literal["running", "silent", "unknown"]
DATABASE: Final = ProcessKind(
    "database", "Database", "nothing can be read or changed", is_essential=True
)
REDIS: Final = ProcessKind(
    "redis",
    "Redis",
    "no task runs, live charts stop, and records are neither accepted nor processed",
    is_essential=True,
)
# A task of the main queue that has waited this long shows that its workers hang (s).
OVERDUE_S: Final = 60.0
# From this share of its limit on, the memory of Redis is a problem; a full Redis refuses writes.
FULL_SHARE: Final = 0.9
NO_MEMORY: Final = RedisMemory()


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """The status of a kind of process, of a cluster's driver, of Redis or of the database.

    `since`: the last heartbeat, None before the first; `silent_s`: the time since then if it is
    silent. `host`: that of a driver's agent, "" for none. `unknown`: Redis, which has the
    heartbeats, does not respond.
    """

    kind: ProcessKind
    state: State
    since: datetime | None
    silent_s: float | None = None
    cluster: str = ""
    host: str = ""

    @property
    def is_missing(self) -> bool:
        """Return whether Weir is not ready because of it."""
        return self.state == "silent" and self.kind.is_essential

    @property
    def text(self) -> str:
        """Return who is silent since when, and what that holds up, for people."""
        name = f"{self.kind.title} of {self.cluster}" if self.cluster else self.kind.title
        return f"{name} {self._silence()}: {self.kind.effect}"

    def _silence(self) -> str:
        verb = "does not respond" if self.kind in (REDIS, DATABASE) else "has sent no heartbeat"
        if self.since is None or self.silent_s is None:
            return verb
        return f"{verb} for {self.silent_s:,.0f} s (since {self.since:%Y-%m-%d %H:%M:%S} UTC)"


@dataclass(frozen=True, slots=True)
class SiteStatus:
    """The status of Weir: processes, the runner's children, and queues."""

    processes: tuple[ProcessStatus, ...]
    children: tuple[ChildReport, ...]
    queues: tuple[QueueReading, ...]
    memory: RedisMemory = NO_MEMORY

    @property
    def is_ready(self) -> bool:
        """Return whether nothing essential is missing."""
        return not any(status.is_missing for status in self.processes)

    @property
    def silent(self) -> tuple[ProcessStatus, ...]:
        """Return what is silent."""
        return tuple(status for status in self.processes if status.state == "silent")

    @property
    def restarting(self) -> tuple[ChildReport, ...]:
        """Return the children that have ended and wait for their restart."""
        return tuple(child for child in self.children if not child.is_running)

    @property
    def overdue(self) -> tuple[QueueReading, ...]:
        """Return the queues of essential workers whose oldest task has waited too long."""
        served = {kind.queue for kind in PROCESSES if kind.is_essential and kind.queue}
        return tuple(
            queue
            for queue in self.queues
            if queue.name in served and (queue.oldest_s or 0.0) > OVERDUE_S
        )

    @property
    def problems(self) -> list[str]:
        """Return a sentence for each problem, for people."""
        return [
            *(status.text for status in self.silent),
            *(
                f"The process {child.name} {child.ended} ({child.failures} in a row) and restarts"
                for child in self.restarting
            ),
            *(
                f"The oldest task of the queue {queue.name} has waited {queue.oldest_s:,.0f} s"
                for queue in self.overdue
            ),
            *self._memory_problems(),
        ]

    def _memory_problems(self) -> list[str]:
        share = self.memory.share
        if share is None or share < FULL_SHARE:
            return []
        limit = self.memory.limit / 2**20
        return [
            f"Redis uses {percent(share)} of its limit of {limit:,.0f} MiB; a full Redis refuses"
            " records and results: shorten retention, or raise WEIR_REDIS_MEMORY_MB"
        ]


def processes_of(reading: LivenessReading) -> list[ProcessStatus]:
    """Return Redis and the status of every kind of process of the site, without drivers."""
    if reading.lost_ms is not None:
        lost_s = (reading.at_ms - reading.lost_ms) / 1000
        redis = ProcessStatus(REDIS, "silent", _moment(reading.lost_ms), lost_s)
        return [redis, *(ProcessStatus(kind, "unknown", None) for kind in _expected())]
    return [
        ProcessStatus(REDIS, "running", _moment(reading.at_ms)),
        *(_status(kind, reading.beats.get(kind.name), reading.at_ms) for kind in _expected()),
    ]


def site_status(*, fresh: bool = False) -> SiteStatus:
    """Return the status without database and drivers, which pages show on their own."""
    reading = read_site(fresh=fresh)
    return SiteStatus(
        tuple(processes_of(reading)), reading.children, reading.queues, reading.memory
    )


def full_status(clusters: Iterable[Cluster]) -> SiteStatus:
    """Return the status with the drivers of these clusters as far as they should run."""
    reading = read_site(fresh=True)
    slugs = [row.slug for row in clusters if row.desired == Cluster.Desired.RUNNING]
    drivers = _drivers(slugs, reading)
    return SiteStatus(
        (database_status(), *processes_of(reading), *drivers),
        reading.children,
        reading.queues,
        reading.memory,
    )


def readiness() -> SiteStatus:
    """Return the status with the database, which may be away, and without drivers."""
    reading = read_site()
    # The web responds, as it calls this.
    others = (row for row in processes_of(reading) if row.kind != WEB)
    return SiteStatus((database_status(), *others), (), ())


def database_status() -> ProcessStatus:
    """Return whether the database responds; it is queried."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (DatabaseError, InterfaceError):
        return ProcessStatus(DATABASE, "silent", None)
    return ProcessStatus(DATABASE, "running", _moment(round(time.time() * 1000)))


def execution_waits_for(cluster: Cluster) -> str:
    """Return the silent processes that an execution of a cluster waits for, "" for none."""
    reading = read_site()
    statuses = [
        status
        for status in processes_of(reading)
        if status.kind == REDIS or status.kind in EXECUTION
    ]
    return _silence([*statuses, *_drivers([cluster.slug], reading)])


def computation_waits_for() -> str:
    """Return the silent processes that a computation waits for, "" for none."""
    needed = (REDIS, WORKER)
    return _silence([row for row in processes_of(read_site()) if row.kind in needed])


def _silence(statuses: list[ProcessStatus]) -> str:
    return "; ".join(status.text for status in statuses if status.state == "silent")


def host_of(cluster: Cluster) -> str:
    """Return the host whose agent runs a cluster, "" for none."""
    is_wanted = cluster.desired == Cluster.Desired.RUNNING
    return read_site().hosts.get(cluster.slug, "") if is_wanted else ""


def _drivers(slugs: list[str], reading: LivenessReading) -> list[ProcessStatus]:
    if reading.lost_ms is not None:
        return [ProcessStatus(DRIVER, "unknown", None, cluster=slug) for slug in slugs]
    beats = driver_beats(slugs)
    return [
        replace(
            _status(DRIVER, beats.get(slug), reading.at_ms, slug), host=reading.hosts.get(slug, "")
        )
        for slug in slugs
    ]


def _status(kind: ProcessKind, beat_ms: int | None, at_ms: int, cluster: str = "") -> ProcessStatus:
    if beat_ms is None:
        return ProcessStatus(kind, "silent", None, cluster=cluster)
    silent_s = (at_ms - beat_ms) / 1000
    if silent_s <= kind.timeout_s:
        return ProcessStatus(kind, "running", _moment(beat_ms), cluster=cluster)
    return ProcessStatus(kind, "silent", _moment(beat_ms), silent_s, cluster)


def _expected() -> list[ProcessKind]:
    """Return the kinds that should run here, besides drivers."""
    is_local = "WEIR_RUN" in os.environ
    return [
        kind
        for kind in PROCESSES
        if kind != DRIVER
        and (is_local or not kind.is_local)
        and (kind != REPLAYER or settings.DEMOS)
    ]


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
