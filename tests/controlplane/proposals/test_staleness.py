"""Proposals are refused and marked as stale only if their drift has lasted."""

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Node
from controlplane.proposals.staleness import refuse_if_stale
from tests.support.execution import ready, scattered

pytestmark = pytest.mark.django_db


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
