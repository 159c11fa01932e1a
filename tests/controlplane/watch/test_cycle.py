"""Passes of the loops over a real cluster: what they write, ask for and let begin."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane import watch as controlplane_watch
from controlplane.access.roles import Actor
from controlplane.models import (
    AuditEntry,
    Blackout,
    Cluster,
    ClusterHealth,
    Decision,
    Exclusion,
    Node,
    Proposal,
    SeriesPeriod,
    Task,
)
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import update_policy
from controlplane.proposals import computation, decisions, requests
from controlplane.proposals.review import Review
from controlplane.topology import nodes
from controlplane.topology.apply import TopologyChange, apply
from controlplane.watch import all_loops, prune, review_proposal, watch_all, watch_cluster
from controlplane.wire.routing.query_actions import MoveTasks
from tests.support.cluster import actor
from tests.support.execution import begun, moves_of, prepared_scattered
from tests.support.watching import measured, newest, reachable

pytestmark = pytest.mark.django_db(transaction=True)
NODE_3_EMPTY = [6, 3, 3, 0]
# Each stream goes to all nodes; a plan halves that.
SCATTERED = {"rf": 4.0}


@pytest.fixture
def spread(operator: Actor, sf: Cluster) -> Cluster:
    """Twelve queries on three streams, each stream delivered to all four nodes."""
    cluster = prepared_scattered(operator, sf)
    reachable(cluster, 1.3)
    Cluster.objects.filter(pk=cluster.pk).update(applied_version=cluster.routing_version)
    cluster.refresh_from_db()
    return cluster


def set_policy(cluster: Cluster, **changes: Any) -> None:
    update_policy(actor("admin", "boss"), cluster, changes)


def asked(cluster: Cluster, now: datetime, **figures: Any) -> Proposal:
    """Let the loops find trouble and a worker compute; the plan is not assessed yet."""
    measured(cluster, now, **SCATTERED | figures)
    watch_cluster(cluster, now)
    proposal = Proposal.objects.get(cluster=cluster, origin="watch", state="computing")
    computation.compute(proposal.pk)
    return proposal


def test_every_loop_writes_one_row_that_counts(spread: Cluster, now: datetime) -> None:
    """The demo's queries run well: nothing is asked for, and each pass says so."""
    for at in range(3):
        later = now + timedelta(seconds=10 * at)
        measured(spread, later)
        watch_cluster(spread, later)
    rows = Decision.objects.filter(cluster=spread)
    assert sorted(rows.values_list("loop", flat=True)) == sorted(loop.name for loop in all_loops())
    assert {row.count for row in rows} == {3}
    row = newest(spread, "imbalance")
    assert (row.code, row.number, row.limit) == ("balanced", 0.0, 0.2)
    assert row.last_at - row.first_at == timedelta(seconds=20)
    assert not Proposal.objects.exists()


def test_trouble_is_recommended(spread: Cluster, now: datetime) -> None:
    proposal = asked(spread, now)
    assert (proposal.requested_by, proposal.planner) == ("watch", "placement")
    assert newest(spread, "replication").code == "asked"
    review_proposal(proposal.pk)
    row = newest(spread, "replication")
    assert (row.code, row.proposal_id) == ("recommended", proposal.pk)
    assert row.number == pytest.approx(0.75)
    proposal.refresh_from_db()
    assert proposal.state == "ready", "a person decides"
    measured(spread, now + timedelta(hours=1), **SCATTERED)
    watch_cluster(spread, now + timedelta(hours=1))
    assert newest(spread, "replication").code == "proposal_waiting"


def test_the_policy_approves_and_it_begins(spread: Cluster, now: datetime) -> None:
    """With audit row and seal, by a part of Weir that is not the one that asked."""
    set_policy(spread, watch="act", auto_kinds=["placement"], four_eyes=True)
    proposal = asked(spread, now)
    review_proposal(proposal.pk)
    proposal.refresh_from_db()
    assert (proposal.state, proposal.approved_by) == ("approved", "policy")
    row = newest(spread, "replication")
    assert (row.code, row.proposal_id) == ("acted", proposal.pk)
    entry = AuditEntry.objects.get(action="proposal.approve")
    assert (entry.actor, entry.seal) == ("policy", proposal.seal)
    assert "Approved automatically: within the policy" in entry.reason
    review_proposal(proposal.pk)
    assert AuditEntry.objects.filter(action="proposal.approve").count() == 1
    watch_cluster(spread, now)
    row = newest(spread, "replication")
    assert (row.code, row.proposal_id) == ("execution_running", proposal.pk)


def test_what_the_policy_does_not_allow_waits_with_the_reason(
    spread: Cluster, now: datetime
) -> None:
    set_policy(spread, watch="act", auto_kinds=["placement"], auto_moves=1)
    proposal = asked(spread, now)
    review_proposal(proposal.pk)
    row = newest(spread, "replication")
    assert (row.code, row.unit) == ("recommended", "share")
    assert f"{len_of(proposal)} moves, at most 1 are allowed" in row.text


def len_of(proposal: Proposal) -> int:
    proposal.refresh_from_db()
    return len(proposal.actions)


def test_a_plan_that_gains_too_little_is_not_proposed(spread: Cluster, now: datetime) -> None:
    set_policy(spread, auto_gain=0.9)
    proposal = asked(spread, now)
    review_proposal(proposal.pk)
    row = newest(spread, "replication")
    assert (row.code, row.limit) == ("no_gain", 0.9)
    assert row.number == pytest.approx(0.75)
    proposal.refresh_from_db()
    assert (proposal.state, proposal.judgement["code"]) == ("no better plan", "no_gain")
    watch_cluster(spread, now + timedelta(seconds=5))
    assert newest(spread, "replication").code == "cooldown", "it does not compute over and over"


def test_a_plan_that_helps_another_loop_in_trouble_is_proposed_for_it(
    spread: Cluster, now: datetime
) -> None:
    """The fullest node asked; its plan evens nothing out and halves what is delivered twice."""
    proposal = asked(spread, now, loads=[400.0, 100.0, 100.0, 100.0])
    assert newest(spread, "imbalance").code == "asked"
    assert newest(spread, "replication").code == "proposal_waiting"
    proposal.refresh_from_db()
    proposal.before["imbalance"] = proposal.after["imbalance"] = 0.15
    proposal.save()
    review_proposal(proposal.pk)
    row = newest(spread, "replication")
    assert (row.code, row.proposal_id) == ("recommended", proposal.pk)


def test_a_loop_whose_plans_come_to_nothing_lets_the_others_ask_first(
    spread: Cluster, now: datetime
) -> None:
    set_policy(spread, auto_gain=0.9, cooldown_s=60)
    loads = [400.0, 100.0, 100.0, 100.0]
    review_proposal(asked(spread, now, loads=loads).pk)
    assert newest(spread, "imbalance").code == "no_gain"
    later = timezone.now() + timedelta(minutes=5)
    asked(spread, later, loads=loads)
    assert newest(spread, "replication").code == "asked"


def test_exclusions_that_leave_nothing_are_told(
    operator: Actor, spread: Cluster, now: datetime
) -> None:
    for at in range(3):
        Exclusion.objects.create(
            cluster=spread, kind="stream", subject=f"s{at}", reason="x", owner="y",
            created_at=now, expires_at=now + timedelta(days=1),
        )  # fmt: skip
    proposal = asked(spread, now)
    review_proposal(proposal.pk)
    row = newest(spread, "replication")
    assert row.code == "excluded"
    assert row.number is not None
    assert row.number > 0


def test_a_blackout_keeps_the_loops_quiet(spread: Cluster, now: datetime) -> None:
    Blackout.objects.create(
        cluster=spread,
        starts_at=now - timedelta(hours=1), ends_at=now + timedelta(hours=1), reason="rush hour",
        owner="x", created_at=now,
    )  # fmt: skip
    measured(spread, now, **SCATTERED)
    watch_cluster(spread, now)
    row = newest(spread, "replication")
    assert (row.code, row.unit) == ("blackout", "ratio"), "the measure, not the time that is left"
    assert "blackout for another 1 h: rush hour" in row.text
    assert newest(spread, "imbalance").code == "balanced", "what is well needs no excuse"
    assert not Proposal.objects.exists()


def test_a_waiting_plan_begins_when_the_policy_allows_it(spread: Cluster, now: datetime) -> None:
    """A blackout that began while it was computed delays it; nobody has to come back for it."""
    set_policy(spread, watch="act", auto_kinds=["placement"])
    proposal = asked(spread, now)
    blackout = Blackout.objects.create(
        cluster=spread,
        starts_at=now - timedelta(hours=1), ends_at=now + timedelta(hours=1), reason="rush hour",
        owner="x", created_at=now,
    )  # fmt: skip
    review_proposal(proposal.pk)
    assert "in a blackout: rush hour" in newest(spread, "replication").text
    blackout.delete()
    watch_cluster(spread, now + timedelta(seconds=10))
    proposal.refresh_from_db()
    assert proposal.state == "approved"


def test_a_withdrawn_approval_is_not_given_again(
    approver: Actor, spread: Cluster, now: datetime
) -> None:
    set_policy(spread, watch="act", auto_kinds=["placement"], starts=False)
    proposal = asked(spread, now)
    review_proposal(proposal.pk)
    decisions.withdraw(approver, proposal, "not today")
    watch_cluster(spread, now + timedelta(seconds=10))
    review_proposal(proposal.pk)
    proposal.refresh_from_db()
    assert (proposal.state, proposal.approved_by) == ("ready", "")


def test_a_waiting_plan_that_fits_no_more_makes_room(
    operator: Actor, spread: Cluster, now: datetime
) -> None:
    """A stale recommendation must not keep the loops from a better one for ever."""
    proposal = asked(spread, now)
    review_proposal(proposal.pk)
    Task.objects.filter(query__name="q0").update(node=spread.nodes.get(index=3))
    Task.objects.filter(query__name="q1").update(node=spread.nodes.get(index=3))
    later = timezone.now() + timedelta(hours=1)
    measured(spread, later, **SCATTERED)
    watch_cluster(spread, later)
    proposal.refresh_from_db()
    assert proposal.state == "stale"
    assert newest(spread, "replication").code == "asked"


@pytest.mark.parametrize(("applicable", "code"), [(3, "proposal_waiting"), (0, "asked")])
def test_a_gain_that_is_lost_for_a_moment_requests_no_other_plan(
    spread: Cluster, now: datetime, applicable: int, code: str
) -> None:
    proposal, later = asked(spread, now), now + timedelta(seconds=PolicySettings().cooldown_s + 1)
    review_proposal(proposal.pk)
    row = Review(1, "", 0.0, applicable, {}, {}, {}, gain_lost=0.9, queries=3)
    Proposal.objects.update(review=row.to_json())
    measured(spread, later, **SCATTERED)
    watch_cluster(spread, later)
    assert newest(spread, "replication").code == code


def test_a_lost_judgement_is_made_up_for(spread: Cluster, now: datetime) -> None:
    """The worker died between computing and judging."""
    set_policy(spread, auto_gain=0.9)
    proposal = asked(spread, now)
    watch_cluster(spread, now + timedelta(seconds=10))
    proposal.refresh_from_db()
    assert proposal.state == "no better plan"
    assert Decision.objects.filter(proposal=proposal, code="no_gain").exists()


def test_a_persons_plan_applies_by_itself_where_the_policy_says_so(
    operator: Actor, spread: Cluster
) -> None:
    plan = requests.request(operator, spread, "mms", {})
    computation.compute(plan.pk)
    review_proposal(plan.pk)
    plan.refresh_from_db()
    assert plan.state == "ready"
    set_policy(spread, auto_kinds=["placement"], four_eyes=True)
    review_proposal(plan.pk)
    plan.refresh_from_db()
    assert (plan.state, plan.approved_by) == ("approved", "policy")
    assert not Decision.objects.exists(), "no loop had to do with it"


def test_the_policy_may_not_approve_what_it_asked_for_itself(
    spread: Cluster, now: datetime
) -> None:
    """Four eyes hold for parts of Weir as well."""
    set_policy(spread, watch="act", auto_kinds=["placement"], four_eyes=True)
    proposal = asked(spread, now)
    Proposal.objects.filter(pk=proposal.pk).update(requested_by="policy")
    review_proposal(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == "ready"
    assert "another approver" in newest(spread, "replication").text


def test_old_data_decides_nothing(spread: Cluster, now: datetime) -> None:
    measured(spread, now - timedelta(seconds=44), **SCATTERED)
    watch_cluster(spread, now)
    row = newest(spread, "replication")
    assert (row.code, row.number, row.limit) == ("data_too_old", None, None)
    assert row.text == "The newest sample is 45 s old, 30 s is the limit"
    assert not Proposal.objects.exists()
    # Without new records nothing is missing.
    Cluster.objects.update(state="running")
    ClusterHealth.objects.create(cluster=spread, observed_at=now, unread=0)
    watch_cluster(Cluster.objects.get(pk=spread.pk), now)
    assert newest(spread, "replication").code == "no_data"


def test_while_another_plan_is_carried_out_the_loops_wait(
    approver: Actor, spread: Cluster, now: datetime
) -> None:
    proposal = begun(approver, spread)
    measured(spread, now, **SCATTERED)
    watch_cluster(spread, now)
    row = newest(spread, "replication")
    assert (row.code, row.proposal_id) == ("execution_running", proposal.pk)


def test_a_lost_node_is_emptied(spread: Cluster, now: datetime) -> None:
    """Whatever it gains: the plan takes every query off it."""
    spread.nodes.filter(index=1).update(active=False)
    proposal = asked(spread, now, rf=1.2)
    assert newest(spread, "node lost").code == "asked"
    review_proposal(proposal.pk)
    assert newest(spread, "node lost").code == "recommended"
    proposal.refresh_from_db()
    there = Task.objects.filter(node__index=1).count()
    assert len([move for move in moves_of(proposal) if move.source == 1]) == there == 3


def test_trouble_in_one_cluster_does_not_keep_the_others_waiting(
    spread: Cluster, now: datetime
) -> None:
    broken = Cluster.objects.create(slug="a-broken", name="B", desired="running")
    Node.objects.create(cluster=broken, index=0, name="node 0")
    measured(broken, now)
    SeriesPeriod.objects.filter(cluster=broken).update(data=b"not compressed")
    measured(spread, now)
    watch_all(now)
    assert not Decision.objects.filter(cluster=broken).exists()
    assert newest(spread, "imbalance").code == "balanced"


def test_switched_off_it_says_so_and_looks_at_nothing(spread: Cluster, now: datetime) -> None:
    set_policy(spread, watch="off", redirects="off")
    measured(spread, now, **SCATTERED)
    watch_cluster(spread, now)
    assert set(Decision.objects.values_list("code", flat=True)) == {"off"}


def test_decisions_are_forgotten_after_a_month(spread: Cluster, now: datetime) -> None:
    measured(spread, now)
    watch_cluster(spread, now)
    assert prune(now + timedelta(days=29)) == 0
    assert prune(now + timedelta(days=31)) == len(all_loops())


def test_the_front_door_names_every_code_that_is_written() -> None:
    assert {"asked", "recommended", "acted", "no_gain"} <= controlplane_watch.CODES.keys()
    assert PolicySettings().watch == "recommend"


@pytest.mark.parametrize("is_back", [False, True])
def test_what_a_plan_emptied_stays_empty_while_the_loads_are_unchanged(
    operator: Actor, spread: Cluster, now: datetime, is_back: bool
) -> None:
    """However long ago: only a node that was away since it hosted tasks is added."""
    cooldown = PolicySettings().cooldown_s
    tasks = Task.objects.filter(node__index=3, query__task_count=1)
    moves = [MoveTasks(query, ((0, 0, 1),)) for query in tasks.values_list("query", flat=True)]
    apply(spread, moves, TopologyChange("A plan empties it"))
    for is_active in (False, True) if is_back else ():
        nodes.configure(operator, spread.nodes.get(index=3), active=is_active)
    spread.refresh_from_db()
    Cluster.objects.filter(pk=spread.pk).update(applied_version=spread.routing_version)
    assert not Task.objects.filter(node__index=3).exists()
    for cycle in (1, 2):
        later = now + timedelta(days=1, seconds=cycle * (cooldown + 1))
        measured(spread, later, rf=1.0, capacity=[500.0] * 4, tasks=NODE_3_EMPTY)
        watch_cluster(spread, later)
    assert Proposal.objects.exists() == is_back
    asked = Decision.objects.filter(loop="node added", code="asked")
    assert asked.exists() == is_back


def plan_of_a_less_urgent_loop(spread: Cluster, now: datetime) -> Proposal:
    """Return a ready plan for a node without tasks, which leaves the replication factor at 4."""
    Task.objects.filter(node__index=3).update(node=spread.nodes.get(index=0))
    spread.nodes.update(hosted=False)
    measured(spread, now, rf=1.0, tasks=NODE_3_EMPTY)
    watch_cluster(spread, now)
    first = Proposal.objects.get()
    assert newest(spread, "node added").code == "asked"
    computation.compute(first.pk)
    review_proposal(first.pk)
    Proposal.objects.filter(pk=first.pk).update(after={**first.after, "replication_factor": 4.0})
    return first


def test_a_plan_that_leaves_a_more_urgent_loop_in_trouble_is_replaced(
    spread: Cluster, now: datetime
) -> None:
    """A node without tasks asks first; its plan must not prevent the one that ends the alert."""
    first = plan_of_a_less_urgent_loop(spread, now)
    later = now + timedelta(seconds=PolicySettings().cooldown_s + 1)
    measured(spread, later, **SCATTERED, tasks=NODE_3_EMPTY)
    watch_cluster(spread, later)
    assert newest(spread, "replication").code == "asked"
    second = Proposal.objects.get(state="computing")
    computation.compute(second.pk)
    review_proposal(second.pk)
    states = Proposal.objects.in_bulk([first.pk, second.pk])
    assert [states[first.pk].state, states[second.pk].state] == ["superseded", "ready"]


@pytest.mark.parametrize("lock", [{"gain_lost": 0.9}, {"drift": {"raised": ["imbalance"]}}])
def test_a_plan_that_nobody_can_approve_does_not_hold_back_a_more_urgent_loop(
    spread: Cluster, now: datetime, lock: dict[str, Any]
) -> None:
    """Its stored result would keep the limit, but its review says that it does not apply."""
    first = plan_of_a_less_urgent_loop(spread, now)
    review = replace(Review(1, "", 0.0, 3, {}, {}, {}, gain_lost=0.0, queries=3), **lock)
    Proposal.objects.filter(pk=first.pk).update(
        after={**first.after, "replication_factor": 1.0}, review=review.to_json()
    )
    later = now + timedelta(seconds=PolicySettings().cooldown_s + 1)
    measured(spread, later, **SCATTERED, tasks=NODE_3_EMPTY)
    watch_cluster(spread, later)
    assert newest(spread, "replication").code == "asked"


def test_a_fruitless_plan_beside_a_waiting_one_is_asked_again_after_the_cool_down(
    spread: Cluster, now: datetime
) -> None:
    plan_of_a_less_urgent_loop(spread, now)
    cooldown = PolicySettings().cooldown_s
    codes = []
    for seconds in (cooldown + 1, cooldown + 11, 2 * cooldown + 2):
        later = now + timedelta(seconds=seconds)
        measured(spread, later, **SCATTERED, tasks=NODE_3_EMPTY)
        watch_cluster(spread, later)
        codes.append(newest(spread, "replication").code)
        Proposal.objects.filter(state="computing").update(state="no_better_plan")
    assert codes == ["asked", "cooldown", "asked"]
    assert Proposal.objects.filter(state="no_better_plan").count() == 2


def test_a_waiting_plan_whose_alert_is_over_is_withdrawn(spread: Cluster, now: datetime) -> None:
    proposal = asked(spread, now)
    review_proposal(proposal.pk)
    set_policy(spread, drift_hold_s=60, cooldown_s=60)
    for minutes in (2, 3, 4):
        later = now + timedelta(minutes=minutes)
        measured(spread, later, rf=1.0)
        reachable(spread, 1.3)
        watch_cluster(spread, later)
    proposal.refresh_from_db()
    assert proposal.state == "stale"
    assert proposal.error == "what it is to end has been within its limit for 1 min"
