"""The status of each visible cluster: the greatest risk that its limits, alerts and state show."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
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
from controlplane.health.summary import backlog_trend, is_idle
from controlplane.models import Alert, Cluster, Decision
from controlplane.numbers import counted, points
from controlplane.policies.grades import Grade
from controlplane.proposals.executions.progress import Progress, running
from controlplane.watch.codes import is_calm

_UNHANDLED: Final = (AlertStatus.FIRING, AlertStatus.RECOVERING)
_OF_PEOPLE: Final = (AlertStatus.ACKNOWLEDGED, AlertStatus.SILENCED)
# An older decision of a monitor does not describe the present.
DECIDED: Final = timedelta(seconds=60)


class FleetStatus(StrEnum):
    """The status of a cluster, the greatest risk first.

    PENDING: a limit is exceeded, not for the hold time of its alert yet; MONITOR: a monitor found
    what no limit of the cluster shows; MEASURING: the first minute does not show the load.
    """

    FAILED = "failed"
    EXCEEDED = "exceeded"
    PENDING = "pending"
    BACKLOG = "backlog"
    DEGRADED = "degraded"
    NEAR = "near a limit"
    ACKNOWLEDGED = "acknowledged"
    SILENCED = "silenced"
    EXECUTING = "executing"
    MONITOR = "monitor"
    STARTING = "starting"
    KEPT = "all limits kept"
    IDLE = "idle"
    MEASURING = "in the first minute"
    NO_DATA = "no data"
    STOPPED = "stopped"


RISK: Final = tuple(FleetStatus)
# Clusters that the headline counts.
NEEDING: Final = (FleetStatus.FAILED, FleetStatus.EXCEEDED)
_LEVELS: Final = {
    "bad": (FleetStatus.FAILED, FleetStatus.EXCEEDED),
    "warn": (
        FleetStatus.PENDING, FleetStatus.BACKLOG, FleetStatus.DEGRADED, FleetStatus.NEAR,
        FleetStatus.ACKNOWLEDGED, FleetStatus.SILENCED, FleetStatus.MONITOR,
    ),
    "info": (FleetStatus.EXECUTING, FleetStatus.STARTING),
    "good": (FleetStatus.KEPT, FleetStatus.IDLE),
}  # fmt: skip
LEVELS: Final = {status: level for level, statuses in _LEVELS.items() for status in statuses}


@dataclass(frozen=True)
class LimitCount:
    """The limits of a cluster beyond which it is, as chips, sentences and the bell count them.

    `exceeded`: the subjects of open alerts that are beyond their limits now, and "application";
    `recovered`: those whose alert is open although the mean of the page is within the limit, so
    that a limit counts for as long as its alert. Both without what is acknowledged or silenced.
    `pending`: beyond a limit, without such an alert.
    """

    exceeded: Sequence[str] = ()
    recovered: Sequence[str] = ()
    pending: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.exceeded) + len(self.recovered)

    @property
    def text(self) -> str:
        """Return the count in a few words: of exceeded limits, else of open alerts."""
        if self.recovered and not self.exceeded:
            return f"{counted(len(self.recovered), 'alerts')} open"
        return f"{counted(len(self.exceeded or self.pending), 'limits')} exceeded"


@dataclass(frozen=True)
class ClusterStatus:
    """A cluster with its status, and what the status follows from.

    `alerts`: that have fired and are not cleared; `execution`: the running one; `monitors`: the
    last decisions of monitors that found a problem; `now`: when all this holds.
    """

    now: datetime
    cluster: Cluster
    readings: ClusterReadings
    alerts: Sequence[Alert]
    execution: Progress | None
    monitors: Sequence[Decision]
    limits: LimitCount
    status: FleetStatus

    @property
    def level(self) -> str:
        """Return good, warn, bad, info or unknown: the colour of the cluster on every page."""
        return LEVELS.get(self.status, "unknown")

    @property
    def words(self) -> str:
        """Return the status in a few words, the same on every page."""
        match self.status:
            case FleetStatus.FAILED if self.cluster.state in FAILED_STATES:
                return str(self.cluster.state)
            case FleetStatus.EXCEEDED | FleetStatus.PENDING:
                return self.limits.text
            case FleetStatus.BACKLOG:
                return str(backlog_trend(self.cluster, self.now))
            case FleetStatus.MONITOR:
                return f"{counted(len(self.monitors), 'monitors')} not OK"
            case FleetStatus.EXECUTING if self.execution is not None:
                return f"{self.execution.proposal.state} {points(self.execution.share)} %"
        return str(self.status)

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

    @property
    def firing(self) -> list[Alert]:
        """Return the alerts that are neither acknowledged nor silenced, the oldest first."""
        return [alert for alert in self.alerts if status_of(alert, self.now) in _UNHANDLED]


def cluster_statuses(visible: Collection[int] | None, now: datetime) -> list[ClusterStatus]:
    """Return the statuses of the visible clusters (None: all) by name."""
    rows = Cluster.objects.select_related("health").order_by("name", "slug")
    clusters = list(rows if visible is None else rows.filter(pk__in=visible))
    ids = [cluster.pk for cluster in clusters]
    readings, alerts = readings_of(clusters, now=now), _by_cluster(open_alerts(ids))
    executions, monitors = running(ids), _monitors(ids, now)
    return [
        _assessed(
            readings[pk], alerts.get(pk, []), executions.get(pk), monitors.get(pk, []), now
        )
        for pk in ids
    ]  # fmt: skip


def _assessed(
    readings: ClusterReadings,
    alerts: Sequence[Alert],
    execution: Progress | None,
    monitors: Sequence[Decision],
    now: datetime,
) -> ClusterStatus:
    limits = _limits(readings, alerts, now)
    status = _status(readings, alerts, limits, execution, monitors, now)
    return ClusterStatus(
        now, readings.cluster, readings, alerts, execution, monitors, limits, status
    )


def _limits(readings: ClusterReadings, alerts: Sequence[Alert], now: datetime) -> LimitCount:
    if readings.cluster.desired != Cluster.Desired.RUNNING:
        return LimitCount()
    states = {alert.subject: status_of(alert, now) for alert in alerts}
    beyond = [str(reading.measure) for reading in readings.exceeded]
    if readings.cluster.state in FAILED_STATES:
        # The agent has decided: its alert follows at once.
        beyond = [APPLICATION, *beyond]
        states.setdefault(APPLICATION, AlertStatus.FIRING)
    beyond += [
        subject for subject, state in states.items()
        if subject in WITHOUT_READING and state is AlertStatus.FIRING
    ]  # fmt: skip
    firing = [subject for subject, state in states.items() if state in _UNHANDLED]
    return LimitCount(
        [subject for subject in beyond if subject in firing],
        [subject for subject in firing if subject not in beyond],
        [
            str(reading.measure) for reading in readings.exceeded
            if states.get(reading.measure) not in (*_OF_PEOPLE, *_UNHANDLED)
        ],
    )  # fmt: skip


def _status(
    readings: ClusterReadings,
    alerts: Sequence[Alert],
    limits: LimitCount,
    execution: Progress | None,
    monitors: Sequence[Decision],
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
        FleetStatus.PENDING: bool(limits.pending),
        FleetStatus.BACKLOG: cluster.state == Cluster.State.CATCHING_UP,
        FleetStatus.DEGRADED: cluster.state == Cluster.State.DEGRADED,
        FleetStatus.NEAR: bool(readings.near),
        FleetStatus.ACKNOWLEDGED: AlertStatus.ACKNOWLEDGED in states,
        FleetStatus.SILENCED: AlertStatus.SILENCED in states,
        FleetStatus.EXECUTING: execution is not None,
        FleetStatus.MONITOR: bool(monitors),
        FleetStatus.STARTING: cluster.state in (Cluster.State.STARTING, Cluster.State.STOPPED),
        FleetStatus.KEPT: readings.grade == Grade.GOOD,
        FleetStatus.IDLE: is_idle(cluster, now),
        FleetStatus.MEASURING: not readings.is_graded,
    }
    return next((status for status, holds in conditions.items() if holds), FleetStatus.NO_DATA)


def _monitors(clusters: Collection[int], now: datetime) -> dict[int, list[Decision]]:
    """Return by cluster the last decisions of the monitors that found a problem."""
    rows = Decision.objects.filter(cluster__in=clusters, last_at__gte=now - DECIDED)
    last = {(row.cluster_id, row.loop): row for row in rows.order_by("last_at", "id")}
    result: dict[int, list[Decision]] = {}
    for row in last.values():
        if not is_calm(row.code):
            result.setdefault(row.cluster_id, []).append(row)
    return result


def _by_cluster(alerts: Sequence[Alert]) -> dict[int, list[Alert]]:
    result: dict[int, list[Alert]] = {}
    for alert in alerts:
        result.setdefault(alert.cluster_id, []).append(alert)
    return result
