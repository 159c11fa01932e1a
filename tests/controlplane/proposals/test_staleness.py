"""Proposals are refused and marked as stale only if their drift has lasted."""

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.errors import Conflict
from controlplane.models import Cluster, Node
from controlplane.proposals.staleness import refuse_if_stale
from tests.support.execution import ready, scattered

pytestmark = pytest.mark.django_db


def test_a_proposal_without_drift_stays_ready(operator: Actor, sf: Cluster) -> None:
    proposal = ready(operator, scattered(operator, sf))
    refuse_if_stale(proposal)
    proposal.refresh_from_db()
    assert (proposal.state, proposal.drift) == ("ready", {})
    assert proposal.review["drift"]["stale"] is False


def test_a_drifted_proposal_is_marked_and_refused(operator: Actor, sf: Cluster) -> None:
    proposal = ready(operator, scattered(operator, sf))
    Node.objects.filter(cluster=proposal.cluster, index=0).update(capacity=250.0)
    with pytest.raises(Conflict) as refused:
        refuse_if_stale(proposal)
    proposal.refresh_from_db()
    assert (refused.value.code, proposal.state) == ("stale", "stale")
    assert proposal.drift == proposal.review["drift"] == refused.value.data


def test_another_state_is_left_as_it_is(operator: Actor, sf: Cluster) -> None:
    """A person has rejected it since it was read: there is nothing to refuse."""
    proposal = ready(operator, scattered(operator, sf))
    Node.objects.filter(cluster=proposal.cluster, index=0).update(capacity=250.0)
    type(proposal).objects.filter(pk=proposal.pk).update(
        state="rejected", decided_at=timezone.now()
    )
    refuse_if_stale(proposal)
    proposal.refresh_from_db()
    assert proposal.state == "rejected"
