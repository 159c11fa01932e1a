"""Endpoints of routing versions."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from controlplane.api.common.lists import listed
from controlplane.api.common.schemas import ListOut, columns_of
from controlplane.api.common.security import viewed_cluster
from controlplane.catalog.routing_versions import version_by_number, versions_slice
from controlplane.models import RoutingVersion
from controlplane.pagination.cursors import Place

router = Router(tags=["routing"])


class VersionOut(
    columns_of(RoutingVersion, "version reason actor proposal created_at published_at applied_at")  # type: ignore[misc]
):
    """A version of the routing table; proposal: the proposal it executes a step of."""


class VersionOpsOut(VersionOut):
    """A version with its actions in their wire format."""

    ops: list[dict[str, Any]]


class VersionPage(ListOut):
    """A page of versions, newest first."""

    versions: list[VersionOut]


@router.get("/{slug}/versions", response=VersionPage)
def list_versions(request: HttpRequest, response: HttpResponse, slug: str) -> Any:
    """List the versions of the routing table, newest first.

    Query parameters proposal (an id: those of its execution), cursor, limit (up to 1000).
    """
    page = versions_slice(viewed_cluster(request), request.GET, Place.of(request.GET))
    return listed(request, response, page) | {"versions": page.rows}


@router.get("/{slug}/versions/{int:number}", response=VersionOpsOut)
def get_version(request: HttpRequest, slug: str, number: int) -> Any:
    """Return one version with its operations."""
    return version_by_number(viewed_cluster(request), number)
