"""Proposals are refused and marked as stale only if their drift has lasted."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Node, Proposal
from controlplane.proposals import staleness, transitions
from controlplane.proposals.review import Review, review
from controlplane.proposals.staleness import refuse_if_stale, review_waiting
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


def test_a_review_that_fails_is_logged_and_the_others_follow(
    operator: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = ready(operator, scattered(operator, sf)), ready(operator, sf)

    def reviewed(proposal: Proposal) -> Review:
        if proposal.pk == first.pk:
            raise ArithmeticError("no number")
        return review(proposal)

    monkeypatch.setattr(staleness, "review", reviewed)
    shown: list[str] = []
    monkeypatch.setattr(transitions, "announce", lambda _, event, **__: shown.append(event["text"]))
    assert review_waiting(timezone.now() + timedelta(minutes=1)) == 1
    assert [record.args for record in caplog.records if record.exc_info] == [(first,)]
    count = len(second.actions)
    assert shown == [f"Proposal {second.pk}: {count} of {count} actions apply now"]
