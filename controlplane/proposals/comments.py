"""Comments on proposals: bounded in length and number, kept as long as the proposal."""

from typing import Final

from django.db import transaction
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.errors import Conflict, Invalid
from controlplane.models import Proposal, ProposalComment
from controlplane.proposals.transitions import notify

MAX_COMMENTS: Final = 200


def comments_of(proposal: Proposal) -> list[ProposalComment]:
    """Return the comments on a proposal, the oldest first."""
    return list(ProposalComment.objects.filter(proposal=proposal).order_by("at", "pk"))


@transaction.atomic
def add_comment(actor: Actor, proposal: Proposal, text: str) -> ProposalComment:
    """Add a comment to a proposal in any state.

    Raises `Forbidden`, `Invalid` for an empty or too long text, `Conflict` too_many_comments.
    """
    require_operator(actor, proposal.cluster)
    text = text.replace("\r\n", "\n").strip()
    if not text:
        raise Invalid({"text": ["Enter a comment"]})
    if len(text) > ProposalComment.MAX_LENGTH:
        raise Invalid({"text": [f"Must have at most {ProposalComment.MAX_LENGTH:,} characters"]})
    # Concurrent comments wait here, so that no more than the limit are written.
    Proposal.objects.select_for_update().filter(pk=proposal.pk).values_list("pk").first()
    count = ProposalComment.objects.filter(proposal=proposal).count()
    if count >= MAX_COMMENTS:
        message = f"The proposal has {count} comments, at most {MAX_COMMENTS} are allowed"
        raise Conflict("too_many_comments", message, {"count": count, "limit": MAX_COMMENTS})
    comment = ProposalComment.objects.create(
        proposal=proposal, author=actor.name, at=timezone.now(), text=text
    )
    audit.record(
        actor, "proposal.comment", str(proposal), cluster=proposal.cluster,
        after={"comment": comment.pk, "text": text},
    )  # fmt: skip
    notify(proposal, f"comment by {actor.name}", passing=True)
    return comment
