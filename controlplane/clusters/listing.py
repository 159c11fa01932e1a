"""Clusters: lookup by slug, lists, and their nodes."""

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, Q

from controlplane.access.roles import Actor
from controlplane.errors import NotFound
from controlplane.models import Cluster, Node, Task
from controlplane.pagination.listing import Filters, Listing, choice_filter, text_filter
from controlplane.pagination.lookup import row_by
from controlplane.telemetry.samples import value_at
from controlplane.telemetry.time_series import latest_values

STATES = tuple(str(state) for state in Cluster.State.values)


@dataclass(frozen=True)
class NodeListRow:
    """A node with its queries and streams; load (records/s) and busy share of the newest sample."""

    node: Node
    queries: int
    streams: int
    load: float | None
    busy: float | None
    tasks: int | None

    @property
    def share(self) -> float | None:
        """Return load over capacity."""
        return None if self.load is None else self.load / self.node.capacity


def cluster_by_slug(slug: str) -> Cluster:
    """Return the cluster; raises `NotFound`."""
    return row_by(Cluster.objects, "cluster", slug=slug)


def visible_cluster(actor: Actor, slug: str) -> Cluster:
    """Return a cluster that the actor may view.

    A cluster that the actor may not view does not differ from an unknown one: both raise
    `NotFound`, after the same SQL statements.
    """
    # Roles are read before the cluster, so also for an unknown one.
    seen = actor.clusters
    cluster = cluster_by_slug(slug)
    if seen is not None and cluster.pk not in seen:
        raise NotFound("cluster", slug)
    return cluster


@dataclass(frozen=True)
class NewestSample:
    """The time of the newest sample of a cluster, in ms since the epoch; None before the first."""

    pk: int
    slug: str
    t: int | None


def newest_samples(visible: Collection[int] | None) -> list[NewestSample]:
    """Return the times of the newest samples of the visible clusters (None: all)."""
    rows = Cluster.objects.order_by("pk")
    if visible is not None:
        rows = rows.filter(pk__in=visible)
    return [
        NewestSample(pk, slug, None if seen is None else round(seen.timestamp() * 1000))
        for pk, slug, seen in rows.values_list("pk", "slug", "last_sample_at")
    ]


@dataclass(frozen=True)
class ClusterFilters(Filters):
    """Filters of the list; text is a part of slug or name, state "" selects all."""

    text: str = text_filter("q")
    state: str = choice_filter("state", lambda: STATES)


def clusters_listing(
    seen: Collection[int] | None, filters: ClusterFilters
) -> Listing[Cluster, Cluster]:
    """Return the clusters by slug, of all or of those with these ids."""
    clusters = Cluster.objects.all() if seen is None else Cluster.objects.filter(pk__in=seen)
    if text := filters.text:
        clusters = clusters.filter(Q(slug__icontains=text) | Q(name__icontains=text))
    if filters.state:
        clusters = clusters.filter(state=filters.state)
    return Listing(clusters, ("slug", "pk"), list, filters)


def node_table(cluster: Cluster) -> list[NodeListRow]:
    """Return the nodes by index with their queries, streams and newest measured load."""
    nodes = list(cluster.nodes.order_by("index"))
    tasks = Task.objects.filter(node__cluster=cluster).order_by().values_list("node")
    hosted = dict(tasks.annotate(Count("id")))
    read = dict(tasks.annotate(Count("query__subscriptions__stream", distinct=True)))
    sample = latest_values(cluster) or {}
    return [
        NodeListRow(
            node=node,
            queries=hosted.get(node.pk, 0),
            streams=read.get(node.pk, 0),
            load=value_at(sample, "loads", node.index),
            busy=value_at(sample, "busy", node.index),
            tasks=value_at(sample, "tasks", node.index),
        )
        for node in nodes
    ]


def node_by_index(cluster: Cluster, index: int) -> Node:
    """Return a node of the cluster; raises `NotFound`."""
    return row_by(cluster.nodes, "node", index=index)
