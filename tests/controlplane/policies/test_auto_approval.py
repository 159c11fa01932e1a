"""What applies by itself: each condition of the policy, with the number that decided."""

from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Blackout, Cluster, Proposal
from controlplane.policies.auto_approval import decide_auto_approval, refusals
from controlplane.policies.settings import PolicySettings, settings_of
from tests.support.execution import prepared_plan, prepared_scattered

pytestmark = pytest.mark.django_db(transaction=True)
WEDNESDAY = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.fixture
def plan(operator: Actor, sf: Cluster) -> Proposal:
    """A placement that lowers the replication factor."""
    return prepared_plan(operator, prepared_scattered(operator, sf))


def policy(plan: Proposal, **changed: Any) -> PolicySettings:
    return settings_of({"auto_kinds": ["placement"], "watch_imbalance": 10.0, **changed})


def code(plan: Proposal, at: datetime = WEDNESDAY, **changed: Any) -> str:
    return decide_auto_approval(plan, policy(plan, **changed), at).code


def test_what_the_policy_allows_is_allowed_with_its_gain(plan: Proposal) -> None:
    verdict = decide_auto_approval(plan, policy(plan), WEDNESDAY)
    assert verdict.allowed
    was, becomes = (one["replication_factor"] for one in (plan.before, plan.after))
    assert verdict.number == pytest.approx((was - becomes) / was)
    assert verdict.limit == 0.05


def test_by_default_nothing_that_moves_state_does(plan: Proposal) -> None:
    verdict = decide_auto_approval(plan, PolicySettings(), WEDNESDAY)
    assert (verdict.allowed, verdict.code) == (False, "kind")
    assert "a person approves" in verdict.text
    assert PolicySettings().auto_kinds == ["admission", "shedding"]


def test_size_is_bounded(plan: Proposal) -> None:
    verdict = decide_auto_approval(plan, policy(plan, auto_moves=1), WEDNESDAY)
    assert (verdict.code, verdict.number, verdict.limit) == ("moves", len(plan.actions), 1)
    plan.predicted["bytes"] = 11_000_000
    verdict = decide_auto_approval(plan, policy(plan), WEDNESDAY)
    assert (verdict.code, verdict.number, verdict.limit) == ("bytes", 11_000_000, 10_000_000)
    assert "11.0 MB of state, at most 10.0 MB" in verdict.text


def test_every_refusal_is_listed_in_its_order(plan: Proposal) -> None:
    strict = policy(plan, auto_kinds=[], auto_moves=1, auto_gain=0.99)
    assert [refusal.code for refusal in refusals(plan, strict)] == ["kind", "moves", "gain"]
    assert refusals(plan, policy(plan)) == []


def test_a_gain_is_asked_for(plan: Proposal) -> None:
    verdict = decide_auto_approval(plan, policy(plan, auto_gain=0.99), WEDNESDAY)
    assert (verdict.code, verdict.limit) == ("gain", 0.99)
    plan.actions = []
    assert code(plan, auto_gain=0.0) == "gain", "nothing to move is not a gain at all"


def test_not_in_a_blackout(plan: Proposal) -> None:
    Blackout.objects.create(
        cluster=plan.cluster, cron="0 11 * * *", minutes=120, reason="rush", owner="x",
        created_at=WEDNESDAY,
    )  # fmt: skip
    verdict = decide_auto_approval(plan, policy(plan), WEDNESDAY)
    assert (verdict.code, "rush" in verdict.text) == ("blackout", True)


def test_who_asked_may_matter(plan: Proposal) -> None:
    assert code(plan, auto_asked=False) == "asked"
    plan.origin = "watch"
    assert code(plan, auto_asked=False) == "allowed"


def test_what_is_for_people_to_choose_stays_theirs(plan: Proposal) -> None:
    plan.origin = "derived"
    assert code(plan) == "candidate"
    plan.origin, plan.decided_by = "person", "somebody who withdrew the approval"
    assert code(plan) == "decided"
    plan.state = "approved"
    assert code(plan) == "not_ready"
