"""Readings: means of a cluster's measures over a period, against the limits of its policy.

Pages and alerts grade by them. A fleet is read in a fixed number of queries.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q
from django.utils import timezone

from controlplane.alerts.measures import KINDS, AlertMeasure, LimitInput, MeasureKind
from controlplane.health.summary import is_idle
from controlplane.models import Alert, Cluster, Policy
from controlplane.policies.grades import Grade
from controlplane.policies.measure_limits import reachable_of
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import stored_settings
from controlplane.telemetry.measures import (
    PRESENT,
    MeasureMeans,
    lines_between,
    means_between,
    new_clusters,
    present_end,
)

LINE_PERIOD: Final = timedelta(minutes=30)
# A period that ends so shortly before now shows the present.
_LIVE: Final = timedelta(seconds=5)
_WORST_FIRST: Final = (Grade.BAD, Grade.WARN, Grade.GOOD, Grade.UNKNOWN)


@dataclass(frozen=True, slots=True)
class AlertReading:
    """The mean of a measure over a period, None without records, and of the period before.

    `limit`: of the policy, None for a measure without one; `near`: from where the limit is near;
    `reachable`: the best value that placement reaches, None if it is not known or no placement
    changes the measure; `node`: the index of the fullest node.
    `since`: since when the limit has been exceeded, None if it is not; `alert`: its open alert.
    """

    kind: MeasureKind
    value: float | None
    before: float | None
    limit: float | None
    near: float | None
    grade: Grade
    reachable: float | None = None
    node: int | None = None
    alert: Alert | None = None

    @property
    def measure(self) -> AlertMeasure:
        """Return the measure."""
        return self.kind.measure

    @property
    def is_exceeded(self) -> bool:
        """Return True if the value is beyond the limit."""
        return self.grade == Grade.BAD

    @property
    def is_unreachable(self) -> bool:
        """Return True if no known placement keeps the limit."""
        known = self.limit is not None and self.reachable is not None
        return known and self.kind.exceeds(self.reachable or 0.0, self.limit or 0.0)

    @property
    def since(self) -> datetime | None:
        """Return since when the limit has been exceeded, None if it is not or not known yet."""
        return self.alert.since if self.alert is not None else None

    @property
    def trend(self) -> float | None:
        """Return the change against the period before, as a part of its value; None if unknown."""
        if self.value is None or not self.before:
            return None
        return self.value / self.before - 1


@dataclass(frozen=True, slots=True)
class ClusterReadings:
    """The readings of a cluster over the period that ends at `end`, by measure."""

    cluster: Cluster
    policy: PolicySettings
    period: timedelta
    end: datetime
    is_live: bool
    by_measure: Mapping[AlertMeasure, AlertReading]

    def __getitem__(self, measure: AlertMeasure | str) -> AlertReading:
        """Return the reading of a measure."""
        return self.by_measure[AlertMeasure(measure)]

    @property
    def readings(self) -> list[AlertReading]:
        """Return the readings in the order of `AlertMeasure`."""
        return list(self.by_measure.values())

    @property
    def exceeded(self) -> list[AlertReading]:
        """Return the readings beyond their limits, the farthest beyond first."""
        return sorted((r for r in self.readings if r.is_exceeded), key=_excess, reverse=True)

    @property
    def near(self) -> list[AlertReading]:
        """Return the readings near their limits."""
        return [reading for reading in self.readings if reading.grade == Grade.WARN]

    @property
    def since(self) -> datetime | None:
        """Return since when the first of the exceeded limits has been exceeded."""
        return min((r.since for r in self.exceeded if r.since is not None), default=None)

    @property
    def is_graded(self) -> bool:
        """Return False if values have no levels yet: the first minute does not show the load."""
        limited = (r for r in self.readings if r.limit is not None and r.value is not None)
        return all(reading.grade != Grade.UNKNOWN for reading in limited)

    @property
    def grade(self) -> Grade:
        """Return the worst level of the measures with a limit; unknown without any or too early."""
        if not self.is_graded:
            return Grade.UNKNOWN
        grades = {reading.grade for reading in self.readings if reading.limit is not None}
        return next((grade for grade in _WORST_FIRST if grade in grades), Grade.UNKNOWN)


def _excess(reading: AlertReading) -> float:
    if reading.value is None or not reading.limit:
        return 0.0
    ratio = reading.value / reading.limit
    return 1 / max(ratio, 1e-9) if reading.kind.is_lower else ratio


def cluster_readings(
    cluster: Cluster, period: timedelta = PRESENT, end: datetime | None = None
) -> ClusterReadings:
    """Return the readings of one cluster; `end`: the present by default."""
    return readings_of([cluster], period, end)[cluster.pk]


def readings_of(
    clusters: Sequence[Cluster],
    period: timedelta = PRESENT,
    end: datetime | None = None,
    now: datetime | None = None,
) -> dict[int, ClusterReadings]:
    """Return the readings of clusters by id; select_related("health") saves a query for each.

    `end`: the present by default; `now`: the present moment.
    """
    now = now or timezone.now()
    is_live = end is None or now - end <= _LIVE
    end = present_end(now) if end is None else min(end, now)
    start = end - period
    ids = [cluster.pk for cluster in clusters]
    means = means_between(ids, start, end)
    policies, reachable = policies_of(ids), reachable_of(ids)
    alerts = _alerts(ids, start, now if is_live else end, is_live)
    new = new_clusters(ids, end) if is_live else ()
    return {
        cluster.pk: ClusterReadings(
            cluster, policies[cluster.pk], period, end, is_live,
            _readings(
                LimitInput(cluster, policies[cluster.pk], reachable.get(cluster.pk)),
                means[cluster.pk],
                alerts.get(cluster.pk, {}),
                now if is_live else None,
                is_new=cluster.pk in new,
            ),
        )
        for cluster in clusters
    }  # fmt: skip


def _readings(
    given: LimitInput,
    means: tuple[MeasureMeans, MeasureMeans],
    alerts: Mapping[str, Alert],
    now: datetime | None,
    *,
    is_new: bool,
) -> dict[AlertMeasure, AlertReading]:
    """Return the readings; `is_new`: what was measured so far does not show the load."""
    result = {}
    for measure, kind in KINDS.items():
        limit = kind.limit(given)
        if measure is AlertMeasure.REPLICATION and now is None:
            # It follows what is reachable: a past period has that of its end.
            limit = means[0].replication_limit or limit
        if measure is AlertMeasure.AGE:
            value, before = _age_s(given.cluster, now), None
        else:
            value, before = (getattr(own, measure) for own in means)
        is_known = measure is AlertMeasure.AGE or not is_new
        result[measure] = AlertReading(
            kind=kind,
            value=value,
            before=before,
            limit=limit,
            near=None if limit is None else kind.near(limit, given.policy.dead_band),
            grade=kind.grade(value if is_known else None, limit, given.policy.dead_band),
            reachable=_best(kind.reachable(given), value),
            node=means[0].node if measure is AlertMeasure.LOAD else None,
            alert=alerts.get(measure),
        )
    return result


def _best(reachable: float | None, value: float | None) -> float | None:
    """Return the best value that is known to be reachable: that of now is reached."""
    return reachable if reachable is None or value is None else min(reachable, value)


def _age_s(cluster: Cluster, now: datetime | None) -> float | None:
    """Return the age of the newest sample in s; None if none is due, or for a past period.

    None is due while the Spark application starts: the alert on its state covers a failed start.
    """
    seen = cluster.last_sample_at
    is_due = now is not None and cluster.desired == Cluster.Desired.RUNNING
    is_due = is_due and cluster.state != Cluster.State.STARTING
    if seen is None or not is_due or now is None or is_idle(cluster, now):
        return None
    return max(0.0, (now - seen).total_seconds())


def policies_of(clusters: Iterable[int]) -> dict[int, PolicySettings]:
    """Return the policies of clusters by id, in one query."""
    rows = {row.cluster_id: row for row in Policy.objects.filter(cluster__in=list(clusters))}
    default = PolicySettings()
    return {pk: stored_settings(rows[pk]) if pk in rows else default for pk in clusters}


def _alerts(
    clusters: Iterable[int], start: datetime, end: datetime, is_live: bool
) -> dict[int, dict[str, Alert]]:
    """Return the open alerts by cluster and subject; of a past period, those that overlap it."""
    rows = Alert.objects.filter(cluster__in=list(clusters), since__lt=end)
    rows = (
        rows.filter(cleared_at=None)
        if is_live
        else rows.filter(Q(cleared_at=None) | Q(cleared_at__gt=start))
    )
    result: dict[int, dict[str, Alert]] = {}
    for row in rows.order_by("since", "id"):
        result.setdefault(row.cluster_id, {})[row.subject] = row
    return result


def lines_of(
    clusters: Sequence[Cluster], period: timedelta = LINE_PERIOD, end: datetime | None = None
) -> dict[int, dict[str, list[float | None]]]:
    """Return by cluster and measure one mean per minute of the period, None at gaps.

    `replication_limit`: the limit of the replication factor, which moves.
    """
    end = end or timezone.now()
    lines = lines_between([cluster.pk for cluster in clusters], end - period, end)
    return {
        pk: {
            str(measure): [getattr(own, measure) for own in means]
            for measure in (*AlertMeasure, "replication_limit")
            if measure is not AlertMeasure.AGE
        }
        for pk, means in lines.items()
    }
