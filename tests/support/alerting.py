"""Clusters of a fleet: with points of their measures, and alerts."""

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from controlplane.models import Alert, Cluster, MeasurePoint, Node

FINE: dict[str, Any] = {
    "latency_p95": 900.0, "node_load": 0.4, "node": 1, "imbalance": 0.05,
    "replication_factor": 1.2, "records_in": 100.0, "input_kept": 1.0, "records_dropped": 0.0,
}  # fmt: skip


def fleet_cluster(slug: str, now: datetime | None = None, **measures: Any) -> Cluster:
    """Return a running cluster of four nodes; `measures`: its means that differ from `FINE`."""
    now = now or timezone.now()
    cluster = Cluster.objects.create(
        slug=slug, name=slug.upper(), desired="running", state="running", last_sample_at=now
    )
    Node.objects.bulk_create(
        Node(cluster=cluster, index=index, name=f"node {index}", capacity=200) for index in range(4)
    )
    add_points(cluster, now, **measures)
    return cluster


def add_points(cluster: Cluster, now: datetime, **measures: Any) -> None:
    """Store the means of the last ten minutes, and of the last 30 by minute."""
    values = FINE | measures
    rows = []
    for seconds, count in ((10, 60), (60, 30)):
        end = int(now.timestamp()) // seconds * seconds
        rows += [
            MeasurePoint(
                cluster=cluster, resolution=seconds,
                t=datetime.fromtimestamp(end - seconds * (place + 1), tz=now.tzinfo), **values,
            )
            for place in range(count)
        ]  # fmt: skip
    MeasurePoint.objects.bulk_create(rows)


def firing(cluster: Cluster, subject: str = "latency_p95", **changed: Any) -> Alert:
    """Return an alert that fires since eight minutes."""
    now = timezone.now()
    values = {
        "state": Alert.State.FIRING, "value": 12_000.0, "worst": 14_000.0, "limit": 10_000.0,
        "since": now - timedelta(minutes=8), "fired_at": now - timedelta(minutes=7),
        "evaluated_at": now,
    } | changed  # fmt: skip
    return Alert.objects.create(cluster=cluster, subject=subject, **values)
