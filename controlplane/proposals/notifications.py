"""Notifications of the browsers of a cluster about a proposal."""

from controlplane.events.publish import announce, event
from controlplane.models import Proposal


def notify(
    proposal: Proposal, text: str, state: str | None = None, *, passing: bool = False
) -> None:
    """Announce after the commit; state is the proposal's if not given, passing as `announce`'s."""
    url = f"/clusters/{proposal.cluster.slug}/proposals/{proposal.pk}/"
    message = event(
        "proposal",
        f"Proposal {proposal.pk}: {text}",
        url=url,
        pk=proposal.pk,
        state=state or proposal.state,
    )
    announce(proposal.cluster_id, message, passing=passing)
