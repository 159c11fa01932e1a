"""What the caller may do: their roles, and what they came with."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema

from controlplane.access.roles import ROLES, Actor
from controlplane.api.common.security import caller
from controlplane.models import ApiToken, Cluster

router = Router(tags=["access"])


class TokenScopeOut(Schema):
    """What a token lets its user do at most; role "" is no limit, cluster null all of them."""

    name: str
    role: str
    cluster: str | None
    expires_at: datetime | None


class MeOut(Schema):
    """Who calls, and the highest role they may use: on all clusters, and on each they may see.

    roles are all there are, each may what those before it may.
    """

    name: str
    role: str
    clusters: dict[str, str]
    roles: list[str]
    token: TokenScopeOut | None


@router.get("", response=MeOut)
def who_am_i(request: HttpRequest) -> Any:
    """Tell who calls and what they may do."""
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
