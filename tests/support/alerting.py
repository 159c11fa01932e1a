"""Clusters of a fleet: with points of their measures, and alerts."""

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from controlplane.models import Alert, Cluster, Node
from tests.support.series import add_measures, even_times

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
    for seconds, count in ((10, 60), (60, 30)):
        for t in even_times(now, seconds, count):
            add_measures(cluster, t, FINE | measures, seconds)


def firing(cluster: Cluster, subject: str = "latency_p95", **changed: Any) -> Alert:
    """Return an alert that fires since eight minutes."""
    now = timezone.now()
    values = {
        "state": Alert.State.FIRING, "value": 12_000.0, "worst": 14_000.0, "limit": 10_000.0,
        "worst_limit": 10_000.0,
        "since": now - timedelta(minutes=8), "fired_at": now - timedelta(minutes=7),
        "evaluated_at": now,
    } | changed  # fmt: skip
    return Alert.objects.create(cluster=cluster, subject=subject, **values)
