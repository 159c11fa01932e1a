"""The status of each visible cluster: the greatest risk that its limits, alerts and state show."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from controlplane.alerts.listing import open_alerts
from controlplane.alerts.readings import ClusterReadings, readings_of
from controlplane.alerts.states import (
    APPLICATION,
    FAILED_STATES,
    WITHOUT_READING,
    AlertStatus,
    status_of,
)
from controlplane.health.summary import is_idle
from controlplane.models import Alert, Cluster
from controlplane.numbers import counted
from controlplane.policies.grades import Grade
from controlplane.proposals.executions.progress import Progress, running

_OF_PEOPLE: Final = (AlertStatus.ACKNOWLEDGED, AlertStatus.SILENCED)


class FleetStatus(StrEnum):
    """What the row of a cluster states, the greatest risk first."""

    FAILED = "failed"
    EXCEEDED = "exceeded"
    NEAR = "near"
    ACKNOWLEDGED = "acknowledged"
    SILENCED = "silenced"
    EXECUTING = "executing"
    STARTING = "starting"
    KEPT = "kept"
    IDLE = "idle"
    NO_DATA = "no_data"
    STOPPED = "stopped"


RISK: Final = tuple(FleetStatus)
# Clusters that the headline counts.
NEEDING: Final = (FleetStatus.FAILED, FleetStatus.EXCEEDED)
GRADES: Final[Mapping[FleetStatus, Grade]] = {
    FleetStatus.FAILED: Grade.BAD,
    FleetStatus.EXCEEDED: Grade.BAD,
    FleetStatus.NEAR: Grade.WARN,
    FleetStatus.ACKNOWLEDGED: Grade.WARN,
    FleetStatus.SILENCED: Grade.WARN,
    FleetStatus.KEPT: Grade.GOOD,
    FleetStatus.IDLE: Grade.GOOD,
}


@dataclass(frozen=True)
class LimitCount:
    """The limits of a cluster that need a person, as chips and sentences count them.

    `exceeded`: the measures and "application" beyond their limits now; `recovered`: the subjects of
    alerts that fire although the mean of the page is within the limit. Both without what is
    acknowledged, silenced or recovering.
    """

    exceeded: Sequence[str] = ()
    recovered: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.exceeded or self.recovered)

    @property
    def text(self) -> str:
        """Return the count in a few words: of exceeded limits, else of firing alerts."""
        if self.exceeded:
            return f"{counted(len(self.exceeded), 'limits')} exceeded"
        return f"{counted(len(self.recovered), 'alerts')} firing"


@dataclass(frozen=True)
class ClusterStatus:
    """A cluster with its status, and what the status follows from.

    `alerts`: that have fired and are not cleared; `execution`: the running one.
    """

    cluster: Cluster
    readings: ClusterReadings
    alerts: Sequence[Alert]
    execution: Progress | None
    limits: LimitCount
    status: FleetStatus

    @property
    def grade(self) -> Grade:
        """Return the level of the status."""
        return GRADES.get(self.status, Grade.UNKNOWN)

    @property
    def needs_person(self) -> bool:
        """Return True if a limit is exceeded that is neither acknowledged nor silenced."""
        return self.status in NEEDING

    @property
    def since(self) -> datetime | None:
        """Return since when the first exceeded limit has been exceeded."""
        subjects = {*self.limits.exceeded, *self.limits.recovered}
        known = [alert.since for alert in self.alerts if alert.subject in subjects]
        return min(known, default=self.readings.since)

    def firing(self, now: datetime) -> list[Alert]:
        """Return the alerts that are neither acknowledged nor silenced, the oldest first."""
        return [alert for alert in self.alerts if status_of(alert, now) is AlertStatus.FIRING]


def cluster_statuses(visible: Collection[int] | None, now: datetime) -> list[ClusterStatus]:
    """Return the statuses of the visible clusters (None: all) by name."""
    rows = Cluster.objects.select_related("health").order_by("name", "slug")
    clusters = list(rows if visible is None else rows.filter(pk__in=visible))
    ids = [cluster.pk for cluster in clusters]
    readings, executions = readings_of(clusters), running(ids)
    alerts = _by_cluster(open_alerts(ids))
    return [
        _assessed(readings[cluster.pk], alerts.get(cluster.pk, []), executions.get(cluster.pk), now)
        for cluster in clusters
    ]


def _assessed(
    readings: ClusterReadings, alerts: Sequence[Alert], execution: Progress | None, now: datetime
) -> ClusterStatus:
    limits = _limits(readings, alerts, now)
    return ClusterStatus(
        cluster=readings.cluster,
        readings=readings,
        alerts=alerts,
        execution=execution,
        limits=limits,
        status=_status(readings, alerts, limits, execution, now),
    )


def _limits(readings: ClusterReadings, alerts: Sequence[Alert], now: datetime) -> LimitCount:
    if readings.cluster.desired != Cluster.Desired.RUNNING:
        return LimitCount()
    states = {alert.subject: status_of(alert, now) for alert in alerts}
    beyond = [str(reading.measure) for reading in readings.exceeded]
    if readings.cluster.state in FAILED_STATES:
        beyond = [APPLICATION, *beyond]
    seen = [alert for alert in alerts if alert.subject in WITHOUT_READING]
    beyond += [alert.subject for alert in seen if alert.fired_at and not alert.within_since]
    firing = [subject for subject, state in states.items() if state is AlertStatus.FIRING]
    return LimitCount(
        [subject for subject in beyond if states.get(subject) not in _OF_PEOPLE],
        [subject for subject in firing if subject not in beyond],
    )


def _status(
    readings: ClusterReadings,
    alerts: Sequence[Alert],
    limits: LimitCount,
    execution: Progress | None,
    now: datetime,
) -> FleetStatus:
    """Return the status of a cluster: the greatest risk that applies."""
    cluster = readings.cluster
    if cluster.desired != Cluster.Desired.RUNNING:
        return FleetStatus.STOPPED
    states = {status_of(alert, now) for alert in alerts}
    conditions = {
        FleetStatus.FAILED: APPLICATION in (*limits.exceeded, *limits.recovered),
        FleetStatus.EXCEEDED: bool(limits),
        FleetStatus.NEAR: bool(readings.near),
        FleetStatus.ACKNOWLEDGED: AlertStatus.ACKNOWLEDGED in states,
        FleetStatus.SILENCED: AlertStatus.SILENCED in states,
        FleetStatus.EXECUTING: execution is not None,
        FleetStatus.STARTING: cluster.state in (Cluster.State.STARTING, Cluster.State.STOPPED),
        FleetStatus.KEPT: readings.grade == Grade.GOOD,
        FleetStatus.IDLE: is_idle(cluster, now),
    }
    return next((status for status, holds in conditions.items() if holds), FleetStatus.NO_DATA)


def _by_cluster(alerts: Sequence[Alert]) -> dict[int, list[Alert]]:
    result: dict[int, list[Alert]] = {}
    for alert in alerts:
        result.setdefault(alert.cluster_id, []).append(alert)
    return result
