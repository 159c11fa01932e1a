"""What waits for approval is on the overview with its outcome, whatever planner computed it."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from controlplane.models import Cluster, Comparison
from tests.support import cluster as made
from tests.support.execution import ready, scattered

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("pages")]


def cards_of(browser: Client, cluster: Cluster) -> str:
    """Return the cards as an open page requests them, with those of plans and monitors."""
    answer = browser.get(f"/clusters/{cluster.slug}/cards/", headers={"HX-Request": "true"})
    return answer.content.decode()


def test_a_waiting_proposal_has_its_outcome_by_the_policy() -> None:
    approver = made.actor("approver")
    cluster: Cluster = made.small_cluster(approver)
    proposal = ready(approver, scattered(approver, cluster))
    browser = Client()
    assert isinstance(approver.user, User)
    browser.force_login(approver.user)
    cards = cards_of(browser, cluster)
    assert f"Proposal {proposal.pk}</b>" in cards
    assert f"Move queries between nodes, {len(proposal.actions)} actions" in cards
    assert "→" in cards.partition("<h2>Plans</h2>")[2].partition("Monitors")[0]


def test_alternatives_of_a_comparison_wait_and_are_named() -> None:
    """Fleet, navigation, overview and list agree on what can be decided."""
    approver = made.actor("approver")
    cluster: Cluster = made.small_cluster(approver)
    proposal = ready(approver, scattered(approver, cluster))
    proposal.comparison = Comparison.objects.create(cluster=cluster, requested_at=timezone.now())
    proposal.save()
    browser = Client()
    assert isinstance(approver.user, User)
    browser.force_login(approver.user)
    alternative = f"alternative of comparison {proposal.comparison_id}"
    pages = cards_of(browser, cluster), browser.get("/").content.decode()
    assert all(alternative in page for page in pages)
    page = browser.get(f"/clusters/{cluster.slug}/proposals/").content.decode()
    assert alternative in page
    assert "1 proposal ready for approval, 1 as alternatives of a comparison" in page
    assert "No proposal waits" not in page
