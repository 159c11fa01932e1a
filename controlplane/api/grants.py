"""Endpoints of grants: who has which role, on one cluster and on all."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status
from pydantic import AliasPath, Field

from controlplane.access import grants
from controlplane.access.grants import GrantFilters, RoleWithoutGrant
from controlplane.access.roles import ADMIN
from controlplane.api.common.lists import list_parameters, listed
from controlplane.api.common.schemas import (
    ListOut,
    Reason,
    ReasonIn,
    below,
    columns_of,
    dataclass_schema,
    shown,
)
from controlplane.api.common.security import caller, cluster_of, open_to
from controlplane.clusters.audiences import any_admins
from controlplane.models import Grant

router = Router(tags=["access"], auth=open_to(ADMIN))
of_cluster = Router(tags=["access"], auth=open_to(ADMIN))


class GrantOut(columns_of(Grant, "role granted_by granted_at")):  # type: ignore[misc]
    """A role of a user on a cluster; cluster null is all clusters."""

    model_config = shown("user cluster role granted_by granted_at")

    user: str = Field(validation_alias=AliasPath("user", "username"))
    cluster: str | None = below("cluster.slug")


class GrantsPage(ListOut):
    """Some grants, by user; without_grants: other roles, for admins of all clusters only."""

    grants: list[GrantOut]
    without_grants: list[dataclass_schema(RoleWithoutGrant)]  # type: ignore[valid-type]


class GrantIn(ReasonIn):
    """The role to grant: viewer, operator, approver or admin."""

    role: str = Field(max_length=10)


@router.get(
    "", response=GrantsPage, openapi_extra=list_parameters(GrantFilters), auth=open_to(any_admins)
)
def list_grants(request: HttpRequest, response: HttpResponse) -> Any:
    """List grants by user, on the clusters that the caller administers.

    Query parameters user (a part of the name), cluster, role, cursor, limit (up to 1000). Requires
    the role admin on at least one cluster.
    """
    actor = caller(request)
    listing = grants.grants_listing(actor, GrantFilters.of(request.GET))
    others = grants.roles_without_grants(actor)
    return listed(request, response, listing, "grants") | {"without_grants": others}


@router.put("/{user}", response=GrantOut)
def grant_everywhere(request: HttpRequest, user: str, body: GrantIn) -> Any:
    """Grant a user a role on all clusters, or change it. Requires the role admin.

    The role admin is granted in a session in which the user has confirmed to be present (401
    confirmation_needed), not with a token. 409 (last_admin) if nobody would be admin afterwards.
    """
    return grants.grant(caller(request), user, body.role, None, body.reason)


@router.delete("/{user}", response={204: None})
def revoke_everywhere(request: HttpRequest, user: str, reason: Reason = "") -> Any:
    """Revoke a user's grant for all clusters. Requires the role admin.

    409 (last_admin) if nobody would be admin afterwards.
    """
    grants.revoke(caller(request), user, None, reason)
    return Status(204, None)


@of_cluster.put("/{slug}/grants/{user}", response=GrantOut)
def grant_on_cluster(request: HttpRequest, slug: str, user: str, body: GrantIn) -> Any:
    """Grant a user a role on a cluster, or change it. Requires the role admin on the cluster.

    The role admin is granted in a session in which the user has confirmed to be present (401
    confirmation_needed), not with a token. 409 (last_admin) if nobody would be admin afterwards.
    """
    actor = caller(request)
    return grants.grant(actor, user, body.role, cluster_of(request), body.reason)


@of_cluster.delete("/{slug}/grants/{user}", response={204: None})
def revoke_on_cluster(request: HttpRequest, slug: str, user: str, reason: Reason = "") -> Any:
    """Revoke a user's grant on a cluster. Requires the role admin on the cluster.

    409 (last_admin) if nobody would be admin afterwards.
    """
    grants.revoke(caller(request), user, cluster_of(request), reason)
    return Status(204, None)
