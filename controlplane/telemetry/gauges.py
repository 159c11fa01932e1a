"""Gauges of a site, read from the database for each request."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count, Sum

from controlplane.models import Cluster, Decision, Delivery, Proposal, Query, Sink, Stream
from controlplane.telemetry.time_series import latest_values

# Queries that have ended may have the same name.
_LATE: Final = Sum("late_records")
# Labels with their count.
Counts = list[tuple[tuple[str, ...], float]]


@dataclass(frozen=True)
class ClusterGauges:
    """A cluster and its newest raw sample, empty before the first."""

    cluster: Cluster
    sample: dict[str, Any]


@dataclass(frozen=True)
class Gauges:
    """Clusters, and counts by labels, the cluster's slug first: of queries and proposals by state.

    decisions are by loop and code; deliveries, of all webhooks, by state. late_streams,
    late_queries: late records by name, where there were some. sinks: with query and cluster.
    """

    clusters: list[ClusterGauges]
    queries: Counts
    proposals: Counts
    decisions: Counts
    deliveries: Counts
    late_streams: Counts
    late_queries: Counts
    sinks: list[Sink]


def gauges(seen: Collection[int] | None = None) -> Gauges:
    """Return the gauges of all clusters, or of those with these ids (and of no webhook)."""
    selected = Cluster.objects.order_by("slug")
    clusters = list(selected if seen is None else selected.filter(pk__in=seen))
    ids = [cluster.pk for cluster in clusters]
    queries = Query.objects.filter(cluster__in=ids)
    late = {"cluster__in": ids, "late_records__gt": 0}
    proposals = Proposal.objects.filter(cluster__in=ids)
    decisions = Decision.objects.filter(cluster__in=ids)
    slugs = {cluster.pk: cluster.slug for cluster in clusters}
    return Gauges(
        [ClusterGauges(cluster, latest_values(cluster) or {}) for cluster in clusters],
        _counts(slugs, queries, "state", total=Count("pk")),
        _counts(slugs, proposals, "state", total=Count("pk")),
        _counts(slugs, decisions, "loop", "code", total=Sum("count")),
        _deliveries() if seen is None else [],
        _counts(slugs, Stream.objects.filter(**late), "name", total=_LATE),
        _counts(slugs, Query.objects.filter(**late), "name", total=_LATE),
        list(Sink.objects.filter(query__cluster__in=ids).select_related("query__cluster")),
    )


def _counts(slugs: dict[int, str], rows: Any, *labels: str, total: Any) -> Counts:
    counted = rows.order_by().values("cluster", *labels).annotate(total=total)
    return [
        ((slugs[row["cluster"]], *(str(row[label]) for label in labels)), float(row["total"]))
        for row in counted.order_by("cluster", *labels)
    ]


def _deliveries() -> Counts:
    counted = Delivery.objects.order_by().values("state").annotate(total=Count("pk"))
    return [((row["state"],), float(row["total"])) for row in counted.order_by("state")]
