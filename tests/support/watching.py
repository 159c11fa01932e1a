"""Clusters that the watch loops look at: samples as the relay stores them."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from controlplane.models import Cluster, Decision, Node, ReachableMeasures
from controlplane.policies.settings import PolicySettings
from controlplane.watch.observation import BATCH_SERIES, FIGURES, ClusterObservation
from tests.support.series import add_sample, grid_of_samples

COUNT = 20
# Ages (s): one before the present window, which has at least eight of the others.
AGES: Final = (73, *range(COUNT, 0, -1))
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


def measured(cluster: Cluster, now: datetime, **changed: Any) -> None:
    """Store a sample before the present window and one a second; loads are even."""
    for age in AGES:
        t = now - timedelta(seconds=age)
        t_ms = round(t.timestamp() * 1000)
        values = {
            "t": t_ms, "version": 1, "arrived": 100.0, "in": 100.0, "read": 100.0,
            "delivered": 120.0, "rf": 1.2, "imbalance": 0.0, "p50": 200.0, "p95": 400.0,
            "p99": 500.0, "batch_ms": 500.0, "loads": [100.0] * 4, "busy": [0.2] * 4,
            "tasks": [3] * 4, "late": 0.0, "waiting": 0, "state_bytes": 100,
            "event_ms": t_ms, "emitted_ms": t_ms,
        } | changed  # fmt: skip
        add_sample(cluster, t, values)
    Cluster.objects.filter(pk=cluster.pk).update(last_sample_at=now - timedelta(seconds=1))
    cluster.refresh_from_db()


def reachable(cluster: Cluster, best: float, **changed: float) -> ReachableMeasures:
    """Store that placement reaches a replication factor, and other measures within all limits."""
    values = {"imbalance": 0.0, "fullest": 0.5} | changed
    row, _ = ReachableMeasures.objects.update_or_create(
        cluster=cluster,
        defaults={
            "version": 1, "computed_at": NOW, "took_s": 0.1, "replication_factor": best, **values
        },
    )  # fmt: skip
    return row


def newest(cluster: Cluster, loop: str) -> Decision:
    """Return a loop's last decision."""
    return Decision.objects.filter(cluster=cluster, loop=loop).order_by("-last_at", "-id")[0]


def node(index: int, **changed: Any) -> tuple[Node, int, bool]:
    """Return a node, the number of its tasks, and whether it is excluded from plans."""
    values = {"capacity": 100.0, "active": True, "tasks": 3, "excluded": False} | changed
    tasks, excluded = values.pop("tasks"), values.pop("excluded")
    return Node(index=index, name=f"node {index}", **values), tasks, excluded


def sample(second: int, **changed: Any) -> dict[str, Any]:
    """Return a sample of two nodes."""
    return {
        "t": 1000 * second, "rf": 1.3, "p95": 800.0, "loads": [60.0, 50.0], "tasks": [3, 3],
        "waiting": 0, "delivered": 110.0,
    } | changed  # fmt: skip


def looked(**changed: Any) -> ClusterObservation:
    """Return the observation of a cluster of two nodes at its last sample, without a database."""
    samples = changed.pop("samples", [sample(at) for at in range(20)])
    rows = changed.pop("nodes", [node(0), node(1)])
    cluster = changed.pop("cluster", Cluster(slug="sf"))
    now = datetime.fromtimestamp(samples[-1]["t"] / 1000 if samples else 0, UTC)
    series = grid_of_samples(FIGURES, samples, len(rows))
    observed = ClusterObservation.of_moment(cluster, now=now)
    # Instead of what the database has.
    vars(observed).update(
        {
            "policy": PolicySettings(), "batches": grid_of_samples(BATCH_SERIES, samples),
            "series": series, "split_queries": 0,
            "nodes": [row for row, _, _ in rows], "excluded_queries": frozenset(),
            "reachable": None, "is_new": False,
            "tasks": {row.index: tasks for row, tasks, _ in rows},
            "excluded_nodes": frozenset(row.name for row, _, excluded in rows if excluded),
        }
        | changed
    )  # fmt: skip
    return observed
