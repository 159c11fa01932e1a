"""Endpoint of the caller: roles, and the scope of the token."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema

from controlplane.access.roles import ROLES, Actor
from controlplane.api.common.security import caller
from controlplane.models import ApiToken, Cluster

router = Router(tags=["access"])


class TokenScopeOut(Schema):
    """The scope of a token; role "" is no limit, cluster null all clusters."""

    name: str
    role: str
    cluster: str | None
    expires_at: datetime | None


class MeOut(Schema):
    """The caller, and their highest role: on all clusters, and on each visible cluster.

    roles are all there are, each may what those before it may.
    """

    name: str
    role: str
    clusters: dict[str, str]
    roles: list[str]
    token: TokenScopeOut | None


@router.get("", response=MeOut)
def get_caller(request: HttpRequest) -> Any:
    """Return the caller and their roles."""
    actor = caller(request)
    return MeOut(
        name=actor.name,
        role=actor.role(),
        clusters=_roles(actor),
        roles=list(ROLES),
        token=_scope(actor),
    )


def _roles(actor: Actor) -> dict[str, str]:
    rows = Cluster.objects.order_by("slug").values_list("pk", "slug")
    roles = {slug: actor.role(pk) for pk, slug in rows}
    return {slug: role for slug, role in roles.items() if role}


def _scope(actor: Actor) -> TokenScopeOut | None:
    if actor.token is None:
        return None
    row = ApiToken.objects.select_related("cluster").get(pk=actor.token)
    cluster = None if row.cluster is None else row.cluster.slug
    return TokenScopeOut(name=row.name, role=row.role, cluster=cluster, expires_at=row.expires_at)
