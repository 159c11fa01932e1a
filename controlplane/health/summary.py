"""Health of a cluster: newest progress, stuck batch, driver restarts, incidents."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from redis import RedisError

from controlplane.connections import redis_client
from controlplane.health.disks import FullDisk, full_disks
from controlplane.health.stuck_batches import StuckBatch, stuck_batch
from controlplane.models import Cluster, ClusterHealth, DriverRestart, Incident
from controlplane.pagination.lookup import row_by
from controlplane.telemetry.sources import has_unread
from controlplane.wire.foreign.entries import SkippedEntries, skipped_entries

HOUR: Final = timedelta(hours=1)
SHOWN: Final = 20
# The agent observes every second; an older observation is stale.
SEEN: Final = timedelta(seconds=15)


@dataclass(frozen=True)
class Health:
    """The health of a cluster; restarts and incidents newest first.

    `stuck`: the batch that fails repeatedly, None without one. `last_hour` counts all restarts of
    the last hour, `undecided` are the incidents without a decision, `disks` the full disks;
    `skipped`: the entries of Redis that Weir could not read, by place.
    """

    cluster: Cluster
    progress: ClusterHealth | None
    stuck: StuckBatch | None
    restarts: list[DriverRestart]
    last_hour: int
    incidents: list[Incident]
    disks: list[FullDisk]
    skipped: list[SkippedEntries]

    @property
    def undecided(self) -> list[Incident]:
        """Return the undecided incidents."""
        return [
            incident for incident in self.incidents if incident.state == Incident.State.UNDECIDED
        ]

    @property
    def is_quiet(self) -> bool:
        """Return True if there is nothing of all this."""
        return not (self.disks or self.stuck or self.restarts or self.incidents or self.skipped)


def health_of(cluster: Cluster, now: datetime) -> Health:
    """Return the health of a cluster, with up to 20 restarts and 20 incidents."""
    undecided = cluster.incidents.filter(state=Incident.State.UNDECIDED)
    others = cluster.incidents.exclude(state=Incident.State.UNDECIDED)[:SHOWN]
    return Health(
        cluster,
        ClusterHealth.objects.filter(cluster=cluster).first(),
        stuck_batch(cluster),
        list(cluster.restarts.all()[:SHOWN]),
        cluster.restarts.filter(at__gte=now - HOUR).count(),
        [*undecided, *others],
        full_disks(),
        skipped_in(cluster.slug),
    )


def skipped_in(slug: str) -> list[SkippedEntries]:
    """Return the skipped entries of a cluster; none if Redis does not respond."""
    try:
        return skipped_entries(redis_client(), slug)
    except (RedisError, OSError):
        return []


def is_idle(cluster: Cluster, now: datetime) -> bool:
    """Return True if a running cluster has no measures because it receives no records.

    The agent has just observed that the log has no unread records, nor do the sources have any, and
    telemetry of the newest micro-batch has arrived.
    """
    health: ClusterHealth | None = getattr(cluster, "health", None)
    if health is None or cluster.state != Cluster.State.RUNNING:
        return False
    is_read = health.unread == 0 and health.batch in (None, cluster.last_batch)
    return is_read and now - health.observed_at < SEEN and not has_unread(cluster.slug)


class BacklogTrend(StrEnum):
    """Whether a backlog shrinks, as pages call it."""

    UNKNOWN = "backlog"
    GROWS = "cannot keep up"
    SHRINKS = "catching up"


def backlog_trend(cluster: Cluster, now: datetime) -> BacklogTrend:
    """Return whether the backlog of a cluster shrinks."""
    health: ClusterHealth | None = getattr(cluster, "health", None)
    if health is None or health.rate is None or now - health.observed_at > SEEN:
        return BacklogTrend.UNKNOWN
    return BacklogTrend.GROWS if health.drained_s is None else BacklogTrend.SHRINKS


def incident_by_id(cluster: Cluster, pk: int) -> Incident:
    """Return an incident of a cluster. Raises `NotFound`."""
    return row_by(cluster.incidents, "incident", pk=pk)
