"""The fleet: one row of numbers per cluster."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Min

from controlplane.executions.progress import Progress, running
from controlplane.models import Cluster, Node, Proposal, Query, Stream
from controlplane.telemetry.time_series import latest_values, recent


@dataclass(frozen=True)
class FleetRow:
    """One cluster in the fleet; sample is the newest, samples those of the last few minutes.

    execution is the running one.
    """

    cluster: Cluster
    running: int
    pending: int
    streams: int
    nodes: int
    active_nodes: int
    waiting: int
    oldest_waiting: datetime | None
    execution: Progress | None
    sample: dict[str, Any] | None
    samples: list[dict[str, Any]]


def fleet(seen: Collection[int] | None = None) -> list[FleetRow]:
    """Return one row per cluster by slug, of all or of those with these ids."""
    rows = Cluster.objects.select_related("health").order_by("slug")
    clusters = list(rows if seen is None else rows.filter(pk__in=seen))
    counted = {
        "running": _count(Query.objects.filter(state=Query.State.RUNNING)),
        "pending": _count(Query.objects.filter(state=Query.State.PENDING)),
        "streams": _count(Stream.objects.all()),
        "nodes": _count(Node.objects.all()),
        "active_nodes": _count(Node.objects.filter(active=True)),
    }
    ready = Proposal.objects.filter(state=Proposal.State.READY).order_by().values("cluster")
    counted_ready = ready.annotate(n=Count("id"), oldest=Min("requested_at"))
    waiting: dict[int, Any] = {row["cluster"]: row for row in counted_ready}
    executions = running()
    return [
        FleetRow(
            cluster=cluster,
            **{name: counts.get(cluster.pk, 0) for name, counts in counted.items()},
            waiting=waiting.get(cluster.pk, {}).get("n", 0),
            oldest_waiting=waiting.get(cluster.pk, {}).get("oldest"),
            execution=executions.get(cluster.pk),
            sample=latest_values(cluster),
            samples=recent(cluster),
        )
        for cluster in clusters
    ]


def _count(rows: Any) -> dict[int, int]:
    counted = rows.order_by().values("cluster").annotate(n=Count("id"))
    return dict(counted.values_list("cluster", "n"))
