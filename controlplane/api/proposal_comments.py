"""Comments on proposals, and reasons that are added after an emergency operation."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from controlplane.api.common.schemas import RequestBody, columns_of
from controlplane.api.common.security import caller, cluster_of
from controlplane.models import ProposalComment
from controlplane.proposals import comments
from controlplane.proposals.executions import control
from controlplane.proposals.listing import proposal_without_plan

router = Router(tags=["proposals"])
PROPOSAL = "/{slug}/proposals/{int:pk}"


class CommentIn(RequestBody):
    """A comment on a proposal, as plain text."""

    text: str = Field(max_length=ProposalComment.MAX_LENGTH)


class AddedReasonIn(RequestBody):
    """The reason of the last emergency operation, for the audit log."""

    reason: str = Field(max_length=2000)


class CommentOut(columns_of(ProposalComment, "id author at text")):  # type: ignore[misc]
    """A comment on a proposal; author: a user name."""


@router.get(f"{PROPOSAL}/comments", response=list[CommentOut])
def list_comments(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return the comments on a proposal, the oldest first."""
    return comments.comments_of(proposal_without_plan(cluster_of(request), pk))


@router.post(f"{PROPOSAL}/comments", response={201: CommentOut})
def add_comment(request: HttpRequest, slug: str, pk: int, body: CommentIn) -> Any:
    """Add a comment to a proposal in any state."""
    actor, proposal = caller(request), proposal_without_plan(cluster_of(request), pk)
    return Status(201, comments.add_comment(actor, proposal, body.text))


@router.post(f"{PROPOSAL}/reason", response={204: None})
def add_reason(request: HttpRequest, slug: str, pk: int, body: AddedReasonIn) -> Any:
    """Add the reason of the last pause or stop that was applied without one."""
    actor, proposal = caller(request), proposal_without_plan(cluster_of(request), pk)
    control.add_reason(actor, proposal, body.reason)
    return Status(204, None)
