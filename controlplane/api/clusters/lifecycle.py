"""Endpoints that create, change, describe and delete clusters, and add the demos' clusters."""

from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import Field, create_model

# The router of the same paths: Ninja asks the first router of a path alone.
from controlplane.access.roles import ADMIN
from controlplane.api.clusters.routes import ClusterOut, router
from controlplane.api.common.bodies import body_of
from controlplane.api.common.schemas import Reason, ReasonIn, dataclass_schema
from controlplane.api.common.security import caller, cluster_of, open_to
from controlplane.cluster_spec.apply import apply_description
from controlplane.cluster_spec.creation import create_cluster
from controlplane.cluster_spec.document import BadDescription, ClusterPart
from controlplane.cluster_spec.export import description_of
from controlplane.cluster_spec.following import followed
from controlplane.cluster_spec.foreign import parse_foreign
from controlplane.cluster_spec.report import ApplyReport
from controlplane.cluster_spec.text import as_json
from controlplane.clusters import changes, demo
from controlplane.clusters.audiences import any_admins
from controlplane.clusters.deletion import delete_cluster
from controlplane.errors import BadBody, Invalid, NotFound
from controlplane.models import FollowedFile
from controlplane.topology.nodes import DEFAULT_CAPACITY, MAX_CAPACITY, MAX_NODES

descriptions = Router(tags=["clusters"], auth=open_to(any_admins))
demos = Router(tags=["clusters"])
JSON: Final = "application/json"
_CLUSTER: Final[dict[str, Any]] = {
    name: (field.annotation, field)
    for name, field in ClusterPart.model_fields.items()
    if name != "slots"
}


class ClusterIn(create_model("_NewCluster", __base__=ReasonIn, **_CLUSTER)):  # type: ignore[misc]
    """A cluster to create, stopped, with nodes of one capacity (deliveries/s)."""

    slots: int = Field(4, ge=1, le=MAX_NODES, description="how many nodes it has")
    node_capacity: float = Field(DEFAULT_CAPACITY, gt=0, le=MAX_CAPACITY)


class ClusterPatchIn(ReasonIn):
    """What to change of a cluster; what is left out stays.

    nu, alpha: the slack of placements, relative and in queries. trigger_ms: milliseconds per
    micro-batch, from the next start on.
    """

    name: str | None = Field(None, min_length=1, max_length=100)
    description: str | None = Field(None, max_length=10_000)
    nu: float | None = Field(None, ge=0, le=1e6)
    alpha: float | None = Field(None, ge=0, le=1e6)
    trigger_ms: int | None = Field(None, ge=1, le=2**31 - 1)


class FollowedOut(Schema):
    """A cluster against its file: whether it is as described, since when, and who differs.

    report: the first changed names and fields; faults: messages by place in the file.
    """

    name: str
    state: FollowedFile.State
    since: datetime
    checked_at: datetime
    changed_by: str
    changes: int
    report: dict[str, Any]
    faults: dict[str, list[str]]


@router.post("", response={201: ClusterOut}, auth=open_to(ADMIN))
def add_cluster(request: HttpRequest, body: ClusterIn) -> Any:
    """Create a stopped cluster with its nodes. Requires the role admin on all clusters.

    409 (cluster_exists) for the slug of a cluster, 409 (slug_used) for that of a deleted cluster
    whose checkpoint is not removed yet.
    """
    values = body.model_dump(exclude={"reason", "node_capacity"})
    part = ClusterPart.model_validate(values)
    return Status(201, create_cluster(caller(request), part, body.node_capacity, body.reason))


@router.patch("/{slug}", response=ClusterOut, auth=open_to(ADMIN))
def change_cluster(request: HttpRequest, slug: str, body: ClusterPatchIn) -> Any:
    """Change name, description, slack or trigger interval of a cluster. Requires the role admin."""
    values = body.model_dump(exclude={"reason"}, exclude_none=True)
    return changes.set_details(caller(request), cluster_of(request), values, body.reason)


@router.delete("/{slug}", response={204: None}, auth=open_to(ADMIN))
def remove_cluster(
    request: HttpRequest,
    slug: str,
    confirm: str = Query(max_length=40),  # type: ignore[type-arg]
    reason: Reason = "",
) -> Any:
    """Delete a stopped cluster with its records and results. Requires the role admin.

    `confirm` repeats the slug, which is free when the agent has removed the checkpoint. 409
    (not_stopped) while it runs, 409 (not_confirmed) for another slug. Entries of the audit log
    stay.
    """
    delete_cluster(caller(request), cluster_of(request), confirm, reason)
    return Status(204, None)


_DESCRIPTION: Final = {"type": "object", "additionalProperties": True}
_READ: Final = {"responses": {200: {"content": {JSON: {"schema": _DESCRIPTION}}}}}
_EXAMPLE: Final = {"weir": 1, "cluster": {"slug": "sf", "name": "San Francisco"}}
_WRITE: Final = {
    "requestBody": {
        "required": True,
        "description": "A description as in docs/cluster-description.md",
        "content": {
            JSON: {"schema": _DESCRIPTION, "examples": {"Only a cluster": {"value": _EXAMPLE}}}
        },
    }
}


@router.get("/{slug}/description", openapi_extra=_READ)
def export_cluster(request: HttpRequest, slug: str, measures: bool = True) -> Any:
    """Return the description of a cluster; `measures`: with measured rates and states."""
    cluster = cluster_of(request)
    return HttpResponse(as_json(description_of(cluster, measures=measures)), content_type=JSON)


@router.get("/{slug}/description/status", response=FollowedOut)
def get_description_status(request: HttpRequest, slug: str) -> Any:
    """Return whether a cluster is as the file describes that it follows (WEIR_DESCRIPTIONS).

    404 for a cluster that follows no file.
    """
    row = followed(cluster_of(request))
    if row is None:
        raise NotFound("description", slug)
    return row


@descriptions.post("", response=dataclass_schema(ApplyReport), openapi_extra=_WRITE)
def apply_cluster(
    request: HttpRequest, apply: bool = False, prune: bool = False, reason: Reason = ""
) -> Any:
    """Create or update a cluster as described; without `apply` nothing is changed.

    `prune`: what the description does not name is ended or removed, but never a cluster.
    Requires the role admin: of all clusters for a new one, else of the described one.
    """
    actor = caller(request)
    try:
        text = body_of(request).decode()
    except UnicodeDecodeError as error:
        raise BadBody("The body is not UTF-8 text") from error
    try:
        description = parse_foreign(text)
        return apply_description(actor, description, apply=apply, prune=prune, reason=reason)
    except BadDescription as bad:
        raise Invalid(bad.faults) from None


@demos.post("/{name}", response={201: ClusterOut})
def add_demo(request: HttpRequest, name: str) -> Any:
    """Create and start the cluster of a demo; an existing one is unchanged."""
    return Status(201, demo.add(caller(request), name))
