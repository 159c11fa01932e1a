"""The fleet: what each visible cluster has, its measures, its risk, and what happened recently."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from django.db.models import Count, QuerySet

from controlplane.alerts.listing import open_alerts
from controlplane.alerts.measures import Measure
from controlplane.alerts.readings import ClusterReadings, lines_of, readings_of
from controlplane.alerts.states import APPLICATION, FAILED_STATES, Status, status_of
from controlplane.executions.progress import Progress, running
from controlplane.health.summary import is_idle
from controlplane.models import Alert, Cluster, Node, Proposal, Query
from controlplane.policies.grades import Grade

_OF_PEOPLE: Final = (Status.ACKNOWLEDGED, Status.SILENCED)


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
class FleetCluster:
    """A cluster of the fleet; `lines`: one mean per minute of the last 30 minutes.

    `alerts`: that have fired and are not cleared; `proposal`: the ready one that waits longest;
    `execution`: the running one. `exceeded`: the measures and "application" beyond their limits
    that are neither acknowledged nor silenced.
    """

    cluster: Cluster
    readings: ClusterReadings
    lines: Mapping[Measure, Sequence[float | None]]
    alerts: Sequence[Alert]
    nodes: int
    queries: int
    proposal: Proposal | None
    waiting: int
    execution: Progress | None
    exceeded: Sequence[str]
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
        known = [alert.since for alert in self.alerts if alert.subject in self.exceeded]
        return min(known, default=self.readings.since)


def fleet_clusters(visible: Collection[int] | None, now: datetime) -> list[FleetCluster]:
    """Return the visible clusters (None: all), the greatest risk first, then by name."""
    rows = Cluster.objects.select_related("health").order_by("name", "slug")
    clusters = list(rows if visible is None else rows.filter(pk__in=visible))
    ids = [cluster.pk for cluster in clusters]
    readings, lines = readings_of(clusters), lines_of(clusters)
    alerts = _by_cluster(open_alerts(ids))
    nodes = _counts(Node.objects.filter(cluster__in=ids, active=True))
    queries = _counts(Query.objects.filter(cluster__in=ids, state=Query.State.RUNNING))
    waiting, executions = _waiting(ids), running(ids)
    result = []
    for cluster in clusters:
        own, execution = alerts.get(cluster.pk, []), executions.get(cluster.pk)
        exceeded = _exceeded(cluster, readings[cluster.pk], own, now)
        proposals = waiting.get(cluster.pk, [])
        result.append(
            FleetCluster(
                cluster=cluster,
                readings=readings[cluster.pk],
                lines=lines[cluster.pk],
                alerts=own,
                nodes=nodes.get(cluster.pk, 0),
                queries=queries.get(cluster.pk, 0),
                proposal=proposals[0] if proposals else None,
                waiting=len(proposals),
                execution=execution,
                exceeded=exceeded,
                status=_status(cluster, readings[cluster.pk], own, exceeded, execution, now),
            )
        )
    return sorted(result, key=_risk)


def _risk(row: FleetCluster) -> tuple[int, float, str]:
    """Return the order of a cluster: status, then the excess of its worst measure, then name."""
    worst = row.readings.exceeded[:1]
    excess = (
        max((reading.value or 0.0) / (reading.limit or 1.0) for reading in worst) if worst else 0.0
    )
    return RISK.index(row.status), -excess, row.cluster.name


def _exceeded(
    cluster: Cluster, readings: ClusterReadings, alerts: Sequence[Alert], now: datetime
) -> list[str]:
    if cluster.desired != Cluster.Desired.RUNNING:
        return []
    by_person = {alert.subject for alert in alerts if status_of(alert, now) in _OF_PEOPLE}
    subjects = [str(reading.measure) for reading in readings.exceeded]
    if cluster.state in FAILED_STATES:
        subjects = [APPLICATION, *subjects]
    firing = [alert.subject for alert in alerts if alert.subject not in subjects]
    return [subject for subject in (*subjects, *firing) if subject not in by_person]


def _status(
    cluster: Cluster,
    readings: ClusterReadings,
    alerts: Sequence[Alert],
    exceeded: Sequence[str],
    execution: Progress | None,
    now: datetime,
) -> FleetStatus:
    """Return the status of a cluster: the greatest risk that applies."""
    if cluster.desired != Cluster.Desired.RUNNING:
        return FleetStatus.STOPPED
    states = {status_of(alert, now) for alert in alerts}
    conditions = {
        FleetStatus.FAILED: APPLICATION in exceeded,
        FleetStatus.EXCEEDED: bool(exceeded),
        FleetStatus.NEAR: bool(readings.near),
        FleetStatus.ACKNOWLEDGED: Status.ACKNOWLEDGED in states,
        FleetStatus.SILENCED: Status.SILENCED in states,
        FleetStatus.EXECUTING: execution is not None,
        FleetStatus.STARTING: cluster.state == Cluster.State.STARTING,
        FleetStatus.KEPT: readings.grade == Grade.GOOD,
        FleetStatus.IDLE: is_idle(cluster, now),
    }
    return next((status for status, holds in conditions.items() if holds), FleetStatus.NO_DATA)


def _by_cluster(alerts: Sequence[Alert]) -> dict[int, list[Alert]]:
    result: dict[int, list[Alert]] = {}
    for alert in alerts:
        result.setdefault(alert.cluster_id, []).append(alert)
    return result


def _counts(rows: QuerySet[Any]) -> dict[int, int]:
    counted = rows.order_by().values("cluster").annotate(n=Count("pk"))
    return dict(counted.values_list("cluster", "n"))


def _waiting(ids: Collection[int]) -> dict[int, list[Proposal]]:
    """Return the ready proposals by cluster, the one that waits longest first."""
    rows = Proposal.objects.filter(cluster__in=ids, state=Proposal.State.READY, comparison=None)
    result: dict[int, list[Proposal]] = {}
    for proposal in rows.defer(*Proposal.HEAVY).order_by("requested_at", "pk"):
        result.setdefault(proposal.cluster_id, []).append(proposal)
    return result
