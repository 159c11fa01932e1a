"""Events about proposals for the browsers of a cluster."""

from controlplane.events.publish import announce, event
from controlplane.models import Proposal


def notify(
    proposal: Proposal, text: str, state: str | None = None, *, passing: bool = False
) -> None:
    """Publish an event after the commit; `state`: by default that of the proposal."""
    url = f"/clusters/{proposal.cluster.slug}/proposals/{proposal.pk}/"
    message = event(
        "proposal",
        f"Proposal {proposal.pk}: {text}",
        url=url,
        pk=proposal.pk,
        state=state or proposal.state,
    )
    announce(proposal.cluster_id, message, passing=passing)
