"""The watch loop of an armed ladder, from its staleness to another ladder."""

from datetime import datetime, timedelta

import pytest

from controlplane.access.roles import Actor
from controlplane.catalog.query_settings import set_shedding
from controlplane.models import ArmedLadder, Cluster, Decision, Node, Proposal, Query, Task
from controlplane.planners.shedding.arming import arm, confirm_ladder, disarm
from controlplane.planners.shedding.loop import ObservedLadder, ladder_of, ladder_reading
from controlplane.planners.shedding.staleness import LadderDrift, StaleCode, StaleReason
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of, update_policy
from controlplane.proposals import computation
from controlplane.watch import review_proposal, watch_cluster
from controlplane.watch.reading import LoopReading
from controlplane.wire.routing.cluster_actions import SetLadder
from tests.support.admission import arrived
from tests.support.cluster import actor
from tests.support.shedding import busy_cluster
from tests.support.watching import measured, newest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def armed(operator: Actor, sf: Cluster, now: datetime) -> Cluster:
    """A busy cluster with an armed ladder that is up to date."""
    busy_cluster(operator, sf, now)
    arm(operator, sf, "needed")
    sf.refresh_from_db()
    Cluster.objects.filter(pk=sf.pk).update(applied_version=sf.routing_version)
    return sf


def watch(cluster: Cluster, now: datetime) -> Decision:
    """Evaluate the loops with new samples and rates as before; return the ladder's decision."""
    rates = {"s0": 300.0, "s1": 100.0, "s2": 200.0}
    arrived(cluster, now, {name: [rate] * 12 for name, rate in rates.items()})
    measured(cluster, now, loads=[500.0] * 4, busy=[0.5] * 4)
    watch_cluster(cluster, now)
    return newest(cluster, "ladder")


def stale_for(cluster: Cluster, now: datetime, seconds: int) -> Decision:
    """Evaluate the loops every fifty seconds; return the decision at the end."""
    for moment in range(0, seconds, 50):
        assert watch(cluster, now + timedelta(seconds=moment)).code == "stale"
    return watch(cluster, now + timedelta(seconds=seconds))


def test_a_ladder_that_is_up_to_date_needs_no_plan(armed: Cluster, now: datetime) -> None:
    decision = watch(armed, now)
    assert (decision.code, decision.number, decision.limit) == ("within", 0.0, 0.1)
    assert not Proposal.objects.exists()


def test_a_stale_ladder_is_computed_again_and_armed(
    operator: Actor, armed: Cluster, now: datetime
) -> None:
    update_policy(actor("admin", "boss"), armed, {"watch": "act", "watch_ladder_s": 60})
    before = ArmedLadder.objects.get(cluster=armed)
    set_shedding(operator, Query.objects.get(name="low"), weight=5.0)
    first = watch(armed, now)
    assert (first.code, "weights or minimums kept of 1 queries" in first.text) == ("stale", True)
    assert watch(armed, now + timedelta(seconds=30)).pk == first.pk
    assert not Proposal.objects.exists()
    asked = watch(armed, now + timedelta(seconds=60))
    assert asked.code == "asked"
    proposal = Proposal.objects.get(cluster=armed)
    assert (proposal.planner, proposal.origin, asked.proposal_id) == (
        "shedding", "watch", proposal.pk,
    )  # fmt: skip
    computation.compute(proposal.pk)
    review_proposal(proposal.pk)
    proposal.refresh_from_db()
    decision = newest(armed, "ladder")
    assert (proposal.state, decision.code) == ("approved", "acted")
    assert "quality lost at twice the capacity from" in decision.text
    (planned,) = proposal.plan
    assert isinstance(planned.action, SetLadder)
    assert planned.action.ladder not in (None, before.value)


def test_by_default_the_loop_recommends(operator: Actor, armed: Cluster, now: datetime) -> None:
    set_shedding(operator, Query.objects.get(name="low"), weight=5.0)
    watch(armed, now - timedelta(seconds=300))
    # No cycle has read that it was stale: the time starts again.
    assert stale_for(armed, now, 300).code == "asked"
    proposal = Proposal.objects.get(cluster=armed)
    computation.compute(proposal.pk)
    review_proposal(proposal.pk)
    assert newest(armed, "ladder").code == "recommended"
    proposal.refresh_from_db()
    assert (proposal.state, proposal.decided_by) == ("ready", "")
    # It is still stale: the recommendation waits, the time does not begin again.
    assert watch(armed, now + timedelta(seconds=310)).code == "proposal_waiting"


def test_a_ladder_that_is_up_to_date_again_needs_no_plan(
    operator: Actor, armed: Cluster, now: datetime
) -> None:
    query = Query.objects.get(name="low")
    set_shedding(operator, query, weight=5.0)
    assert watch(armed, now).code == "stale"
    set_shedding(operator, query, weight=0.1)
    assert watch(armed, now + timedelta(seconds=290)).code == "within"
    set_shedding(operator, query, weight=5.0)
    assert watch(armed, now + timedelta(seconds=310)).code == "stale"
    assert not Proposal.objects.exists()


def test_a_ladder_without_a_snapshot_is_stale(armed: Cluster, now: datetime) -> None:
    ArmedLadder.objects.update(snapshot=None)
    observed = ladder_of(armed, policy_of(armed), now)
    assert observed is not None
    assert [reason.code for reason in observed.drift.reasons] == [StaleCode.UNKNOWN]
    assert (observed.stale_s, observed.is_trouble) == (0.0, False)


def test_the_same_ladder_again_has_the_newer_snapshot(armed: Cluster, now: datetime) -> None:
    before = ArmedLadder.objects.get(cluster=armed)
    ArmedLadder.objects.update(snapshot=None)
    assert stale_for(armed, now, 300).code == "asked"
    proposal = Proposal.objects.get(cluster=armed)
    computation.compute(proposal.pk)
    review_proposal(proposal.pk)
    proposal.refresh_from_db()
    assert (proposal.actions, newest(armed, "ladder").code) == ([], "no_gain")
    row = ArmedLadder.objects.get(cluster=armed)
    assert (row.value, row.snapshot_id) == (before.value, proposal.snapshot_row_id)
    assert row.set_at == before.set_at
    assert watch(armed, now + timedelta(seconds=310)).code == "within"


def test_a_ladder_that_was_armed_meanwhile_is_not_confirmed(
    operator: Actor, armed: Cluster, now: datetime
) -> None:
    ArmedLadder.objects.update(snapshot=None)
    stale_for(armed, now, 300)
    proposal = Proposal.objects.get(cluster=armed)
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    set_shedding(operator, Query.objects.get(name="low"), weight=5.0)
    other = arm(operator, armed, "by hand")
    assert not confirm_ladder(proposal)
    assert ArmedLadder.objects.get(cluster=armed).snapshot_id == other.snapshot_id


def test_no_armed_ladder_is_not_watched(operator: Actor, armed: Cluster, now: datetime) -> None:
    disarm(operator, armed, "over")
    assert ladder_of(armed, PolicySettings(), now) is None
    assert watch(armed, now).code == "within"


def reading_of(
    *reasons: StaleCode, stale_s: float = 0.0, is_trouble: bool = False, **changes: float
) -> LoopReading:
    drift = LadderDrift(
        0.5, changes.get("mix", 0.0), 0.0,
        tuple(StaleReason(code, f"{code} changed") for code in reasons),
        changes.get("queries", 0.0),
    )  # fmt: skip
    return ladder_reading(PolicySettings(), ObservedLadder(drift, stale_s, is_trouble))


def test_a_ladder_is_stale_for_some_time_before_a_plan() -> None:
    fresh = reading_of(mix=0.05)
    assert (fresh.number, fresh.limit, fresh.trouble, fresh.near) == (0.05, 0.1, False, False)
    assert fresh.calm == "within"
    assert reading_of(mix=0.095).near
    young = reading_of(StaleCode.RATES, mix=0.4, stale_s=299.0)
    assert (young.trouble, young.calm, young.number) == (False, "stale", 0.4)
    assert young.text == "The enabled shedding plan is stale: rates changed"
    assert reading_of(StaleCode.RATES, mix=0.4, stale_s=300.0).trouble
    # A plan was requested: it is stale until it is armed.
    assert reading_of(StaleCode.RATES, mix=0.4, is_trouble=True).trouble


def test_single_queries_make_no_ladder_stale() -> None:
    few = reading_of(StaleCode.QUERIES, queries=0.02, is_trouble=True)
    assert (few.trouble, few.number, few.calm) == (False, 0.02, "within")
    assert reading_of(StaleCode.QUERIES, queries=0.2, is_trouble=True).trouble
    both = reading_of(StaleCode.QUERIES, StaleCode.WEIGHTS, queries=0.02, is_trouble=True)
    assert both.trouble
    assert both.text == "The enabled shedding plan is stale: weights changed"


def test_without_an_armed_ladder_there_is_nothing_to_compute() -> None:
    reading = ladder_reading(PolicySettings(), None)
    assert (reading.trouble, reading.near, reading.limit) == (False, False, None)


def test_a_full_cluster_without_a_ladder_is_given_one(
    operator: Actor, sf: Cluster, now: datetime
) -> None:
    """Its plan has a gain: the load at twice the capacity is what the policy allows."""
    busy_cluster(operator, sf, now)
    measured(sf, now, loads=[600.0] * 4, busy=[0.9] * 4)
    watch_cluster(sf, now)
    decision = newest(sf, "capacity")
    assert (decision.code, decision.text) == (
        "asked", "All nodes together are loaded to 120 % of their capacity",
    )  # fmt: skip
    proposal = Proposal.objects.get(cluster=sf)
    computation.compute(proposal.pk)
    review_proposal(proposal.pk)
    proposal.refresh_from_db()
    assert (proposal.planner, newest(sf, "capacity").code) == (
        "shedding", "recommended",
    )  # fmt: skip
    assert proposal.before["peak_load"] == 2
    assert proposal.after["peak_load"] == pytest.approx(1.0, abs=0.01)
    # The ladder drops nothing yet: the rates of the streams fit the nodes.
    assert (proposal.before["dropped"], proposal.after["dropped"]) == (0.0, 0.0)


def test_an_enabled_plan_answers_a_full_cluster(armed: Cluster, now: datetime) -> None:
    """Its row is not that of a limit that is kept."""
    measured(armed, now, loads=[600.0] * 4, busy=[0.5] * 4)
    watch_cluster(armed, now)
    decision = newest(armed, "capacity")
    assert decision.code == "answered"
    assert decision.number == pytest.approx(1.2)


def test_records_that_another_node_keeps_are_no_load_of_a_node_that_drops_them(
    operator: Actor, sf: Cluster, now: datetime
) -> None:
    """An emulated node receives a record of a stream if one of its own queries keeps it."""
    busy_cluster(operator, sf, now)
    Node.objects.filter(cluster=sf).update(emulated=True)
    Task.objects.filter(query__name="high").update(node=sf.nodes.get(index=1))
    measured(sf, now, loads=[600.0] * 4, busy=[0.9] * 4)
    watch_cluster(sf, now)
    proposal = Proposal.objects.get(cluster=sf)
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.after["peak_load"] == pytest.approx(1.0, abs=0.01)
