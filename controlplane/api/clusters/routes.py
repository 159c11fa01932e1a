"""Endpoints of clusters, nodes and samples."""

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router

from controlplane.api.clusters.schemas import (
    BatchLimitsIn,
    ClusterOut,
    MasterIn,
    NodeIn,
    NodeOut,
    NodesIn,
)
from controlplane.api.common.lists import listed
from controlplane.api.common.schemas import ReasonIn
from controlplane.api.common.security import caller, cluster_of, viewed_cluster
from controlplane.clusters import lifecycle, partitions
from controlplane.clusters.listing import (
    clusters_slice,
    node_by_index,
    node_table,
)
from controlplane.errors import Invalid
from controlplane.pagination.cursors import Place
from controlplane.telemetry.time_series import RESOLUTIONS
from controlplane.telemetry.time_series import samples as read_samples
from controlplane.topology import nodes

router = Router(tags=["clusters"])
DEFAULT_SPAN = timedelta(minutes=15)


@router.get("", response=list[ClusterOut])
def list_clusters(request: HttpRequest, response: HttpResponse) -> Any:
    """List the visible clusters by slug.

    Query parameters q, state, cursor, limit (up to 1000, as many by default); the header Link
    has the next page.
    """
    actor = caller(request)
    page = clusters_slice(
        actor.clusters, request.GET, Place.of({"limit": 1000} | request.GET.dict())
    )
    listed(request, response, page)
    return page.rows


@router.get("/{slug}", response=ClusterOut)
def get_cluster(request: HttpRequest, slug: str) -> Any:
    """Return one cluster."""
    return viewed_cluster(request)


@router.post("/{slug}/start", response=ClusterOut)
def start_cluster(request: HttpRequest, slug: str, body: ReasonIn) -> Any:
    """Start the cluster's application."""
    return lifecycle.start(caller(request), cluster_of(request), body.reason)


@router.post("/{slug}/stop", response=ClusterOut)
def stop_cluster(request: HttpRequest, slug: str, body: ReasonIn) -> Any:
    """Stop the cluster's application."""
    return lifecycle.stop(caller(request), cluster_of(request), body.reason)


@router.post("/{slug}/master", response=ClusterOut)
def set_master(request: HttpRequest, slug: str, body: MasterIn) -> Any:
    """Set the Spark master of a cluster; a running application is restarted on it."""
    return lifecycle.set_master(caller(request), cluster_of(request), body.master, body.reason)


@router.post("/{slug}/limits", response=ClusterOut)
def set_batch_limits(request: HttpRequest, slug: str, body: BatchLimitsIn) -> Any:
    """Set the limits of micro-batches; a running application is restarted with them."""
    limits = body.model_dump(exclude={"reason"}, exclude_none=True)
    return partitions.set_batch_limits(caller(request), cluster_of(request), limits, body.reason)


@router.post("/{slug}/nodes", response=list[NodeOut])
def set_nodes(request: HttpRequest, slug: str, body: NodesIn) -> Any:
    """Change the number of nodes, while the cluster runs; returns all nodes.

    The next micro-batch runs with it. A node that is removed must be inactive and without queries.
    """
    actor, cluster = caller(request), cluster_of(request)
    nodes.set_count(actor, cluster, body.nodes, body.reason)
    return node_table(cluster)


@router.get("/{slug}/nodes", response=list[NodeOut])
def list_nodes(request: HttpRequest, slug: str) -> Any:
    """Return the nodes with their tasks and load."""
    return node_table(viewed_cluster(request))


@router.patch("/{slug}/nodes/{int:index}", response=list[NodeOut])
def change_node(request: HttpRequest, slug: str, index: int, body: NodeIn) -> Any:
    """Change the capacity of a node, or whether it takes new work; returns all nodes."""
    actor, cluster = caller(request), cluster_of(request)
    nodes.configure(
        actor, node_by_index(cluster, index), body.reason,
        capacity=body.capacity, emulated=body.emulated, active=body.active,
    )  # fmt: skip
    return node_table(cluster)


@router.get("/{slug}/samples", response=list[dict[str, Any]])
def list_samples(
    request: HttpRequest,
    slug: str,
    start: datetime | None = None,
    end: datetime | None = None,
    resolution: int | None = None,
) -> Any:
    """Return measured samples, oldest first; by default the last fifteen minutes."""
    caller(request)
    if resolution is not None and resolution not in RESOLUTIONS:
        raise Invalid({"resolution": ["Must be 1, 10 or 60 seconds"]})
    until = _aware("end", end) or timezone.now()
    since = _aware("start", start) or until - DEFAULT_SPAN
    if since >= until:
        raise Invalid({"start": ["Must be before end"]})
    return read_samples(cluster_of(request), since, until, resolution)


def _aware(field: str, moment: datetime | None) -> datetime | None:
    if moment is not None and timezone.is_naive(moment):
        raise Invalid({field: ["Give a time zone"]})
    return moment
