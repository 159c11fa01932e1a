"""Endpoints of the caller, of tokens and of the audit log."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import Field

from controlplane.access import audit_chain, tokens
from controlplane.access.audit import COLUMNS, AuditFilters, audit_listing
from controlplane.access.audit_chain import Verification
from controlplane.access.roles import ADMIN, ROLES, VIEWER, Actor
from controlplane.api.common.lists import list_parameters, listed
from controlplane.api.common.schemas import (
    RequestBody,
    SecretOut,
    below,
    columns_of,
    fields_of,
    list_of,
    listed_columns_of,
    shown,
)
from controlplane.api.common.security import caller, open_to
from controlplane.clusters.audiences import members
from controlplane.clusters.listing import visible_cluster
from controlplane.errors import LoginNeeded
from controlplane.models import ApiToken, AuditEntry, Cluster

me = Router(tags=["access"])
tokens_router = Router(tags=["access"], auth=open_to(members))
audit = Router(tags=["audit"])


class TokenScopeOut(columns_of(ApiToken, "name role expires_at")):  # type: ignore[misc]
    """The scope of a token; role "" is not a limit, cluster null all clusters."""

    cluster: str | None = below("cluster.slug")


class MeOut(Schema):
    """The caller, and their highest role: on all clusters, and on each visible cluster.

    roles are all there are, each may what those before it may.
    """

    name: str
    role: str
    clusters: dict[str, str]
    roles: list[str]
    token: TokenScopeOut | None


@me.get("", response=MeOut)
def get_caller(request: HttpRequest) -> Any:
    """Return the caller and their roles."""
    actor = caller(request)
    rows = Cluster.objects.order_by("slug").values_list("pk", "slug")
    return {
        "name": actor.name,
        "role": actor.role(),
        "clusters": {slug: role for pk, slug in rows if (role := actor.role(pk))},
        "roles": ROLES,
        "token": ApiToken.objects.select_related("cluster").filter(pk=actor.token or 0).first(),
    }


class TokenIn(RequestBody):
    """A token: the most it may, the only cluster where (null: all), and for how many days.

    role: one of the roles, or producer, which appends to the streams of its cluster and reads their
    schemas, and nothing else.
    """

    name: str = Field(max_length=tokens.MAX_NAME)
    role: str = VIEWER
    cluster: str | None = None
    days: int = tokens.DEFAULT_DAYS


class TokenOut(columns_of(ApiToken, "id name hint role created_at expires_at last_used_at")):  # type: ignore[misc]
    """A token without its secret; hint is the secret's last four characters."""

    model_config = shown("id name role cluster expires_at last_used_at")

    user: str = below("user.username")
    cluster: str | None = below("cluster.slug")


class NewTokenOut(SecretOut):
    """A new token with its secret, which is not shown again."""

    token: TokenOut


@tokens_router.get("", response=list[TokenOut])
def list_tokens(
    request: HttpRequest,
    user: str = Query("", max_length=150),  # type: ignore[type-arg]
) -> Any:
    """Return the caller's tokens by name, at most a hundred.

    Query parameter user: those of this user, which requires the role admin on all clusters.
    """
    actor = caller(request)
    return tokens.tokens_of_user(actor, user) if user else tokens.tokens_of(actor)


def _logged_in(actor: Actor, request: HttpRequest) -> None:
    """Admit members with a session."""
    members(actor, request)
    if actor.token is not None:
        raise LoginNeeded


@tokens_router.post("", response={201: NewTokenOut}, auth=open_to(_logged_in))
def make_token(request: HttpRequest, body: TokenIn) -> Any:
    """Create a token of the caller; only this response has the secret.

    Requires a session in which the user has confirmed to be present (401 confirmation_needed).
    """
    actor = caller(request)
    cluster = None if body.cluster is None else visible_cluster(actor, body.cluster)
    row, secret = tokens.make(actor, body.name, body.role, cluster, body.days)
    return Status(201, {"token": row, "secret": secret})


@tokens_router.delete("/{int:pk}", response={204: None})
def revoke_token(request: HttpRequest, pk: int) -> Any:
    """Revoke a token of the caller, or as an admin of all clusters a token of any user.

    A caller with a token can revoke that token only.
    """
    tokens.revoke(caller(request), pk)
    return Status(204, None)


class AuditOut(listed_columns_of(AuditEntry, COLUMNS)):  # type: ignore[misc]
    """One change."""

    cluster: str | None = below("cluster.slug")


AuditPage = list_of("AuditPage", entries=AuditOut)


@audit.get("", response=AuditPage, openapi_extra=list_parameters(AuditFilters))
def list_audit(request: HttpRequest, response: HttpResponse) -> Any:
    """List audit entries, newest first.

    Query parameters q, cluster, action, request (a request's id), cursor, limit (up to 1000). Who
    sees some clusters only gets the entries of those. Entries about logins, sessions, passwords
    and tokens, and addresses of clients, are for admins and the person concerned.
    """
    filters = AuditFilters.of(request.GET, reader=caller(request))
    return listed(request, response, audit_listing(filters), "entries")


class VerificationOut(fields_of(Verification, without="is_pending")):  # type: ignore[misc]
    """A verification of the audit log; sequence and hash are the head of the chain.

    intact is false if there is a fault, or no verification yet. entries: the verified entries.
    pending: a worker verifies the log now; the other fields are of the verification before.
    """

    intact: bool = Field(validation_alias="is_intact")
    pending: bool = Field(validation_alias="is_pending")


class VerifyIn(RequestBody):
    """The head of the chain as an earlier verification returned it, if it was noted."""

    sequence: int | None = Field(None, ge=0)
    hash: str = Field("", max_length=64)


@audit.get("/verification", response=VerificationOut)
def get_verification(request: HttpRequest) -> Any:
    """Return the result of the last verification of the audit log, which takes place hourly."""
    return audit_chain.last_verification()


@audit.post("/verify", response={200: VerificationOut, 202: VerificationOut}, auth=open_to(ADMIN))
def verify_audit(request: HttpRequest, body: VerifyIn) -> Any:
    """Verify the whole audit log now. Requires the role admin.

    With a noted head, a chain that was computed again is reported too. A long log is verified by a
    worker: 202, and GET /audit/verification has the result.
    """
    noted = None if body.sequence is None else (body.sequence, body.hash)
    done = audit_chain.request_verification(caller(request), noted)
    return Status(202 if done.is_pending else 200, done)
