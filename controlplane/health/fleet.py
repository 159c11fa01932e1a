"""The fleet: one row of counts per cluster, with its newest figures."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db.models import Count

from controlplane.models import Cluster, Node, Proposal, Query, Stream
from controlplane.telemetry.time_series import latest_values


@dataclass(frozen=True)
class FleetRow:
    """One cluster in the fleet; `sample`: the newest figures; `waiting`: ready proposals."""

    cluster: Cluster
    running: int
    pending: int
    streams: int
    nodes: int
    active_nodes: int
    waiting: int
    sample: dict[str, Any] | None


def fleet(seen: Collection[int] | None = None) -> list[FleetRow]:
    """Return one row per cluster by slug, of all or of those with these ids."""
    rows = Cluster.objects.order_by("slug")
    clusters = list(rows if seen is None else rows.filter(pk__in=seen))
    counted = {
        "running": _count(Query.objects.filter(state=Query.State.RUNNING)),
        "pending": _count(Query.objects.filter(state=Query.State.PENDING)),
        "streams": _count(Stream.objects.all()),
        "nodes": _count(Node.objects.all()),
        "active_nodes": _count(Node.objects.filter(active=True)),
        "waiting": _count(Proposal.awaiting_approval()),
    }
    return [
        FleetRow(
            cluster=cluster,
            **{name: counts.get(cluster.pk, 0) for name, counts in counted.items()},
            sample=latest_values(cluster),
        )
        for cluster in clusters
    ]


def _count(rows: Any) -> dict[int, int]:
    counted = rows.order_by().values("cluster").annotate(n=Count("id"))
    return dict(counted.values_list("cluster", "n"))
