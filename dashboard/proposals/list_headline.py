"""The headline of the list of proposals."""

from django.db.models import Count, Min
from django.urls import reverse
from django.utils import timezone

from controlplane import numbers
from controlplane.models import Cluster, Proposal
from controlplane.numbers import counted
from controlplane.plans.proposal_states import State
from dashboard.frame.headline import Headline

_ACTIVE = (State.APPROVED, State.EXECUTING, State.PAUSED, State.ROLLING_BACK)


def list_headline(cluster: Cluster) -> Headline:
    """Return how many proposals wait for approval, and which one is executed."""
    proposals = Proposal.objects.filter(cluster=cluster)
    ready = (
        Proposal.awaiting_approval()
        .filter(cluster=cluster)
        .aggregate(count=Count("pk"), oldest=Min("requested_at"), first=Min("pk"))
    )
    active = proposals.filter(state__in=_ACTIVE).only("pk", "state").order_by("pk").first()
    why = f"Proposal {active.pk} is {active.state}." if active is not None else ""
    if ready["count"]:
        waits = numbers.duration(timezone.now() - ready["oldest"])
        what = (
            f"{counted(ready['count'], 'proposals')} ready for approval; the oldest waits {waits}"
        )
        link = reverse("proposal", args=[cluster.slug, ready["first"]])
        return Headline(
            what, why, "info", link=link, link_title=f"Review proposal {ready['first']}"
        )
    if active is not None:
        link = reverse("proposal", args=[cluster.slug, active.pk])
        return Headline(why, grade="info", link=link, link_title="Show its execution")
    computing = proposals.filter(state=State.COMPUTING).count()
    if computing:
        return Headline(f"{counted(computing, 'proposals')} computed now", grade="info")
    return Headline("No proposal waits")
