"""The fleet: the clusters by risk, with their measures over time and what waits for a person."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, QuerySet

from controlplane.alerts.readings import lines_of
from controlplane.alerts.statuses import RISK, ClusterStatus
from controlplane.models import Node, Proposal, Query


@dataclass(frozen=True)
class FleetCluster:
    """A cluster of the fleet; `lines`: one mean per minute of the last 30 minutes.

    `nodes`: active ones; `queries`: running ones; `proposal`: the ready one that waits longest, of
    `waiting`.
    """

    assessed: ClusterStatus
    lines: Mapping[str, Sequence[float | None]]
    nodes: int
    queries: int
    proposal: Proposal | None
    waiting: int


def fleet_clusters(statuses: Sequence[ClusterStatus], end: datetime) -> list[FleetCluster]:
    """Return the clusters with these statuses, the greatest risk first, then by name."""
    clusters = [assessed.cluster for assessed in statuses]
    ids = [cluster.pk for cluster in clusters]
    lines, waiting = lines_of(clusters, end=end), _waiting(ids)
    nodes = _counts(Node.objects.filter(cluster__in=ids, active=True))
    queries = _counts(Query.objects.filter(cluster__in=ids, state=Query.State.RUNNING))
    result = []
    for assessed in sorted(statuses, key=_risk):
        pk = assessed.cluster.pk
        proposals = waiting.get(pk, [])
        result.append(
            FleetCluster(
                assessed=assessed,
                lines=lines[pk],
                nodes=nodes.get(pk, 0),
                queries=queries.get(pk, 0),
                proposal=proposals[0] if proposals else None,
                waiting=len(proposals),
            )
        )
    return result


def _risk(row: ClusterStatus) -> tuple[int, float, str]:
    """Return the order of a cluster: status, then the excess of its worst measure, then name."""
    worst = row.readings.exceeded[:1]
    excess = (
        max((reading.value or 0.0) / (reading.limit or 1.0) for reading in worst) if worst else 0.0
    )
    return RISK.index(row.status), -excess, row.cluster.name


def _counts(rows: QuerySet[Any]) -> dict[int, int]:
    counted = rows.order_by().values("cluster").annotate(n=Count("pk"))
    return dict(counted.values_list("cluster", "n"))


def _waiting(ids: Collection[int]) -> dict[int, list[Proposal]]:
    """Return the ready proposals by cluster, the one that waits longest first."""
    rows = Proposal.awaiting_approval().filter(cluster__in=ids)
    result: dict[int, list[Proposal]] = {}
    for proposal in rows.defer(*Proposal.HEAVY).order_by("requested_at", "pk"):
        result.setdefault(proposal.cluster_id, []).append(proposal)
    return result
