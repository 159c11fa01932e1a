"""Endpoints of the caller's tokens."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from controlplane.access import tokens
from controlplane.access.roles import VIEWER
from controlplane.api.common.derived import below, columns_of
from controlplane.api.common.security import caller, visible_cluster
from controlplane.models import ApiToken

router = Router(tags=["access"])


class TokenIn(Schema):
    """A token: the most it may, the only cluster where (null: all), and for how many days."""

    name: str = Field(max_length=tokens.MAX_NAME)
    role: str = VIEWER
    cluster: str | None = None
    days: int = tokens.DEFAULT_DAYS


class TokenOut(columns_of(ApiToken, "id name hint role created_at expires_at last_used_at")):  # type: ignore[misc]
    """A token without its secret; hint is the secret's last four characters."""

    cluster: str | None = below("cluster.slug")


class NewTokenOut(Schema):
    """A new token with its secret, which is not shown again."""

    token: TokenOut
    secret: str


@router.get("", response=list[TokenOut])
def list_tokens(request: HttpRequest) -> Any:
    """Return the caller's tokens by name, at most a hundred."""
    return tokens.tokens_of(caller(request))


@router.post("", response={201: NewTokenOut})
def make_token(request: HttpRequest, body: TokenIn) -> Any:
    """Create a token of the caller; only this response has the secret. Requires a session."""
    actor = caller(request)
    cluster = None if body.cluster is None else visible_cluster(actor, body.cluster)
    row, secret = tokens.make(actor, body.name, body.role, cluster, body.days)
    return Status(201, {"token": row, "secret": secret})


@router.delete("/{int:pk}", response={204: None})
def revoke_token(request: HttpRequest, pk: int) -> Any:
    """Revoke a token of the caller; a caller with a token can revoke that token only."""
    tokens.revoke(caller(request), pk)
    return Status(204, None)
