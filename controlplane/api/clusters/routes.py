"""Endpoints of clusters, nodes, samples and routing versions."""

from datetime import timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router
from pydantic import ConfigDict, Field

from controlplane.access.roles import ADMIN
from controlplane.api.common.lists import list_parameters, listed
from controlplane.api.common.schemas import ReasonIn, Time, columns_of, list_of, shown
from controlplane.api.common.security import caller, cluster_of, open_to
from controlplane.catalog.routing_versions import (
    VersionFilters,
    version_by_number,
    versions_listing,
)
from controlplane.clusters import changes
from controlplane.clusters.listing import (
    ClusterFilters,
    clusters_listing,
    node_by_index,
    node_table,
)
from controlplane.errors import Invalid
from controlplane.formats.moments import shifted
from controlplane.models import Cluster, Node, RoutingVersion
from controlplane.pagination.pages import MAX_PER_PAGE
from controlplane.telemetry.time_series import RESOLUTIONS, latest_values, require_readable
from controlplane.telemetry.time_series import samples as read_samples
from controlplane.topology import nodes
from controlplane.wire.redaction import without_password


class ClusterOut(
    columns_of(  # type: ignore[misc]
        Cluster,
        "slug name description desired state state_detail slots splits split_capacity"
        " split_emulated nu alpha trigger_ms master log_url log_limit_mb partitions"
        " max_records max_batch_mb routing_version applied_version last_batch last_sample_at",
    )
):
    """A cluster; age of the data is now minus last_sample_at; log_url empty: the site's Redis.

    split_capacity: records/s of each split node, 0: measured.
    """

    model_config = shown("slug name desired state state_detail")

    resolve_log_url = staticmethod(lambda cluster: without_password(cluster.log_url))


class NodeOut(columns_of(Node, "index name capacity emulated active", under="node")):  # type: ignore[misc]
    """A node; capacity and load in deliveries/s, busy a share of wall time."""

    queries: int
    streams: int
    load: float | None
    busy: float | None


ClusterPage = list_of("ClusterPage", clusters=ClusterOut)


class MasterIn(ReasonIn):
    """Where Spark runs the nodes: local[n], spark://host:port, yarn or k8s://https://host:port."""

    master: str = Field(max_length=200)


class NodesIn(ReasonIn):
    """How many nodes a cluster has."""

    nodes: int = Field(ge=1, le=1000)


class BatchLimitsIn(ReasonIn):
    """Bounds of one micro-batch in records and MiB of the log; what is left out stays."""

    max_records: int | None = Field(None, ge=1_000, le=10_000_000)
    max_batch_mb: int | None = Field(None, ge=1, le=1024)


class NodeIn(ReasonIn):
    """What to change of a node; what is left out stays.

    capacity: in deliveries/s; emulated: limit the node to it; active: planners assign work to it.
    """

    model_config = ConfigDict(extra="forbid")

    capacity: float | None = None
    emulated: bool | None = None
    active: bool | None = None


router = Router(tags=["clusters"])
DEFAULT_SPAN = timedelta(minutes=15)


@router.get("", response=ClusterPage, openapi_extra=list_parameters(ClusterFilters))
def list_clusters(request: HttpRequest, response: HttpResponse) -> Any:
    """List the visible clusters by slug.

    Query parameters q, state, cursor, limit (up to 1000, as many by default).
    """
    listing = clusters_listing(caller(request).clusters, ClusterFilters.of(request.GET))
    return listed(request, response, listing, "clusters", limit=MAX_PER_PAGE)


@router.get("/{slug}", response=ClusterOut)
def get_cluster(request: HttpRequest, slug: str) -> Any:
    """Return one cluster."""
    return cluster_of(request)


@router.post("/{slug}/start", response=ClusterOut)
def start_cluster(request: HttpRequest, slug: str, body: ReasonIn) -> Any:
    """Start the cluster's application."""
    return changes.start(caller(request), cluster_of(request), body.reason)


@router.post("/{slug}/stop", response=ClusterOut)
def stop_cluster(request: HttpRequest, slug: str, body: ReasonIn) -> Any:
    """Stop the cluster's application."""
    return changes.stop(caller(request), cluster_of(request), body.reason)


@router.post("/{slug}/master", response=ClusterOut, auth=open_to(ADMIN))
def set_master(request: HttpRequest, slug: str, body: MasterIn) -> Any:
    """Set the Spark master of a cluster; a running application is restarted on it."""
    return changes.set_master(caller(request), cluster_of(request), body.master, body.reason)


@router.post("/{slug}/limits", response=ClusterOut)
def set_batch_limits(request: HttpRequest, slug: str, body: BatchLimitsIn) -> Any:
    """Set the limits of micro-batches; a running application is restarted with them."""
    limits = body.model_dump(exclude={"reason"}, exclude_none=True)
    return changes.set_batch_limits(caller(request), cluster_of(request), limits, body.reason)


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
    return node_table(cluster_of(request))


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
    start: Time | None = None,
    end: Time | None = None,
    resolution: int | None = None,
) -> Any:
    """Return measured samples, oldest first; by default the last fifteen minutes."""
    if resolution is not None and resolution not in RESOLUTIONS:
        raise Invalid(
            {"resolution": [f"Must be one of {', '.join(map(str, RESOLUTIONS))} seconds"]}
        )
    until = end or timezone.now()
    since = start or shifted(until, -DEFAULT_SPAN)
    if since >= until:
        raise Invalid({"start": ["Must be before end"]})
    require_readable(since, until, resolution)
    return read_samples(cluster_of(request), since, until, resolution)


@router.get("/{slug}/sample", response=dict[str, Any] | None)
def get_sample(request: HttpRequest, slug: str) -> Any:
    """Return the newest sample, null before the first."""
    return latest_values(cluster_of(request))


class VersionOut(
    columns_of(RoutingVersion, "version reason actor proposal created_at published_at applied_at")  # type: ignore[misc]
):
    """A version of the routing table; proposal: the proposal it executes a step of."""

    model_config = shown("version created_at applied_at actor reason")


class VersionOpsOut(VersionOut):
    """A version with its actions in their wire format."""

    ops: list[dict[str, Any]]


VersionPage = list_of("VersionPage", versions=VersionOut)


@router.get(
    "/{slug}/versions", response=VersionPage, tags=["routing"],
    openapi_extra=list_parameters(VersionFilters),
)  # fmt: skip
def list_versions(request: HttpRequest, response: HttpResponse, slug: str) -> Any:
    """List the versions of the routing table, newest first.

    Query parameters proposal (an id: those of its execution), cursor, limit (up to 1000).
    """
    listing = versions_listing(cluster_of(request), VersionFilters.of(request.GET))
    return listed(request, response, listing, "versions")


@router.get("/{slug}/versions/{int:number}", response=VersionOpsOut, tags=["routing"])
def get_version(request: HttpRequest, slug: str, number: int) -> Any:
    """Return one version with its operations."""
    return version_by_number(cluster_of(request), number)
