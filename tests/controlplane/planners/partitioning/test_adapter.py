"""Proposals of the partitioning planner, from samples of keys to the routing table and back."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Unusable
from controlplane.models import Cluster, Proposal, Query
from controlplane.planners.partitioning.observation import read_input
from controlplane.planners.partitioning.problem import grouped_queries, predictions, problem_of
from controlplane.planners.partitioning.skew_history import record
from controlplane.planning.adapters import adapter_of
from controlplane.planning.load_model import LoadModel
from controlplane.planning.measured.key_loads import predict
from controlplane.planning.measured.sampled_keys import PartitioningInput
from controlplane.planning.measures import IMBALANCE, measures
from controlplane.planning.resolution import resolve
from controlplane.planning.snapshots import take_snapshot
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.policies.auto_approval import decide_auto_approval
from controlplane.policies.exclusions import add_exclusion
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import update_policy
from controlplane.proposals import computation, decisions, requests
from controlplane.proposals.comparisons import compare
from controlplane.proposals.executions import control
from controlplane.topology.key_groupings import set_key_grouping
from controlplane.topology.rows import current_table
from controlplane.watch import review_proposal, watch_cluster
from controlplane.wire.routing.query_actions import SetKeyGrouping
from tests.support.cluster import actor, placed_split
from tests.support.execution import carried_out
from tests.support.key_samples import EVEN, sampled
from tests.support.watching import measured, newest

pytestmark = pytest.mark.django_db(transaction=True)
RANDOM_CHOICES = '{"eps":0.5,"grouping":"random_choices"}'


@pytest.fixture
def query(operator: Actor, sf: Cluster, now: datetime) -> Query:
    """A query of 8 tasks on 4 nodes of 500 records/s; a key has 40 % of its 1,000 records/s."""
    query = placed_split(operator, sf, "q", "key")
    sampled(query, now)
    Cluster.objects.filter(pk=sf.pk).update(applied_version=sf.routing_version, desired="running")
    sf.refresh_from_db()
    return query


def snapshot_of(cluster: Cluster) -> ClusterSnapshot:
    return take_snapshot(cluster.pk, 0.1, {read_input})


def proposed(by: Actor, cluster: Cluster, **parameters: float) -> Proposal:
    cluster.refresh_from_db()
    proposal = requests.request(by, cluster, "", parameters, planner="partitioning")
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    return proposal


def test_keys_are_read_from_the_recent_samples(
    operator: Actor, sf: Cluster, query: Query, now: datetime
) -> None:
    placed_split(operator, sf, "no_samples", "key")
    sampled(placed_split(operator, sf, "no_grouping"), now)
    given = read_input(sf, now)
    (keys,) = given.queries
    assert (keys.id, len(keys.hashes), keys.others) == (query.pk, 301, 0)
    assert keys.shares[0] == pytest.approx(0.4)
    assert keys.records_per_s == pytest.approx(1_000, rel=0.01)
    assert keys.streams == sorted(
        sf.streams.filter(name__in=("s0", "s1")).values_list("id", flat=True)
    )
    assert given.merge_s is None
    assert read_input(sf, now + timedelta(minutes=11)).queries == []


def test_snapshots_have_the_input_only_for_this_planner(sf: Cluster, query: Query) -> None:
    snapshot = snapshot_of(sf)
    stored = ClusterSnapshot.from_json(snapshot.to_json())
    assert stored.input(PartitioningInput) == snapshot.input(PartitioningInput)
    assert stored.to_json() == snapshot.to_json()
    assert take_snapshot(sf.pk, 0.1).input(PartitioningInput) is None


def test_a_proposal_lowers_the_skew(operator: Actor, sf: Cluster, query: Query) -> None:
    proposal = proposed(operator, sf)
    assert proposal.state == Proposal.State.READY, proposal.error
    (action,) = [planned.action for planned in proposal.plan]
    assert isinstance(action, SetKeyGrouping)
    assert (action.query, action.key_grouping != "") == (query.pk, True)
    before, after = proposal.before, proposal.after
    # Its task has 1.6 times the capacity of half a node.
    assert before["skew"] > 0.9
    assert after["skew"] < 0.1
    assert after["pairs"] >= before["pairs"] == proposal.bounds["pairs"]
    assert after["partials"] >= before["partials"] > 0
    assert proposal.predicted["skew"] == after["skew"]


def test_measures_are_those_of_the_replay_of_the_present_grouping(
    sf: Cluster, query: Query
) -> None:
    snapshot = snapshot_of(sf)
    (grouped,) = grouped_queries(snapshot)
    values = measures(snapshot, (), adapter_of("partitioning").measures)
    expected = predict("", problem_of(grouped, snapshot).stream)
    assert values["skew"] == pytest.approx(expected.imbalance)
    assert (values["pairs"], values["pairs"]) == (expected.memory, expected.keys)
    without = measures(take_snapshot(sf.pk, 0.1), (), adapter_of("partitioning").measures)
    assert (without["skew"], without["pairs"], without["partials"]) == (None, None, None)


def test_the_loads_of_nodes_follow_the_key_grouping(sf: Cluster, query: Query) -> None:
    snapshot = snapshot_of(sf)
    work = [400.0, *[600.0 / 7] * 7]
    streams = [stream._replace(rate=500.0) for stream in snapshot.streams]
    split = [snapshot.split[0]._replace(work=work)]
    snapshot = replace(snapshot, split=split, streams=streams)
    plan = resolve(snapshot, [SetKeyGrouping(query.pk, '{"grouping":"shuffle"}')])
    before, after = LoadModel.of(snapshot), LoadModel.of(snapshot).after(plan)
    assert after.loads.sum() == pytest.approx(before.loads.sum())
    assert IMBALANCE.compute(snapshot, before, ()) > 0.3
    assert IMBALANCE.compute(snapshot, after, ()) == pytest.approx(0.0, abs=0.01)
    unknown = replace(snapshot, inputs={"partitioning": PartitioningInput([])})
    same = LoadModel.of(unknown).after(plan)
    assert same.loads.tolist() == LoadModel.of(unknown).loads.tolist()


def test_even_keys_need_no_plan(operator: Actor, sf: Cluster, now: datetime) -> None:
    sampled(placed_split(operator, sf, "q", "key"), now, EVEN, records_per_s=100.0)
    proposal = proposed(operator, sf)
    assert (proposal.state, len(proposal.plan)) == (Proposal.State.NO_BETTER_PLAN, 0)


def test_excluded_queries_stay(operator: Actor, sf: Cluster, query: Query, now: datetime) -> None:
    for kind, subject in (("query", "q"), ("stream", "s0")):
        exclusion = add_exclusion(operator, sf, kind, subject, "no", now + timedelta(days=1))
        (grouped,) = grouped_queries(snapshot_of(sf))
        assert grouped.excluded
        assert len(proposed(operator, sf).plan) == 0
        exclusion.delete()
    assert len(proposed(operator, sf).plan) == 1


def test_without_a_grouped_query_a_request_is_refused(operator: Actor, sf: Cluster) -> None:
    placed_split(operator, sf, "q", "")
    with pytest.raises(Unusable) as refused:
        proposed(operator, sf)
    assert refused.value.code == "no_split_query"


def test_without_samples_a_proposal_fails(operator: Actor, sf: Cluster) -> None:
    placed_split(operator, sf, "q", "key")
    proposal = proposed(operator, sf)
    assert (proposal.state, proposal.error_code) == (Proposal.State.FAILED, "no_sample")


def test_people_approve_by_default(operator: Actor, sf: Cluster, query: Query) -> None:
    proposal = proposed(operator, sf)
    assert "partitioning" not in PolicySettings().auto_kinds
    assert decide_auto_approval(proposal, PolicySettings()).code == "kind"
    allowing = PolicySettings(auto_kinds=["partitioning"])
    decision = decide_auto_approval(proposal, allowing)
    assert (decision.allowed, decision.code) == (True, "allowed")


def test_a_plan_that_raises_the_skew_above_its_limit_is_not_approved(
    operator: Actor, sf: Cluster, query: Query
) -> None:
    proposal = proposed(operator, sf)
    proposal.before |= {"skew": 0.1, "pairs": 1_000}
    proposal.after |= {"skew": 0.3, "pairs": 10}
    allowing = PolicySettings(auto_kinds=["partitioning"])
    assert decide_auto_approval(proposal, allowing).code == "spoils"


def test_a_policy_that_allows_it_starts_a_plan_of_the_loop(
    sf: Cluster, query: Query, now: datetime
) -> None:
    update_policy(actor("admin", "boss"), sf, {"watch": "act", "auto_kinds": ["partitioning"]})
    later = now + timedelta(seconds=10)
    assert record(sf, later) >= 1
    measured(sf, later)
    watch_cluster(sf, later)
    asked = newest(sf, "skew")
    assert asked.code == "asked", asked.text
    assert asked.number is not None
    assert asked.number > 0.9
    assert newest(sf, "imbalance").code == "balanced"
    proposal = Proposal.objects.get(cluster=sf, origin="watch")
    computation.compute(proposal.pk)
    review_proposal(proposal.pk)
    proposal.refresh_from_db()
    assert (proposal.state, proposal.approved_by) == ("approved", "policy")
    assert newest(sf, "skew").code == "acted"
    measured(sf, later + timedelta(seconds=10))
    watch_cluster(sf, later + timedelta(seconds=10))
    assert newest(sf, "skew").code == "execution_running"


def test_an_excluded_query_is_watched_but_not_changed(
    operator: Actor, sf: Cluster, query: Query, now: datetime
) -> None:
    add_exclusion(operator, sf, "query", "q", "no", now + timedelta(days=1))
    later = now + timedelta(seconds=10)
    record(sf, later)
    measured(sf, later)
    watch_cluster(sf, later)
    assert newest(sf, "skew").code == "excluded"
    assert not Proposal.objects.exists()


def test_a_comparison_and_a_budget(operator: Actor, sf: Cluster, query: Query) -> None:
    """Both candidates share a snapshot; a change of a key grouping has no cost."""
    wanted: list[tuple[str, str, dict[str, Any]]] = [
        ("partitioning", "", {}),
        ("migration", "", {}),
    ]
    comparison = compare(operator, sf, wanted, {"moves": 1})
    for candidate in comparison.candidates.all():
        computation.compute(candidate.pk)
    rows = {row.planner: row for row in comparison.candidates.all()}
    assert {name: row.state for name, row in rows.items()} == {
        "partitioning": Proposal.State.READY, "migration": Proposal.State.NO_BETTER_PLAN,
    }  # fmt: skip
    assert len(rows["partitioning"].plan) == 1
    assert rows["partitioning"].snapshot.input(PartitioningInput) is not None
    assert rows["partitioning"].snapshot_row_id == rows["migration"].snapshot_row_id


def test_from_the_watch_loop_to_the_rollback(
    operator: Actor, approver: Actor, sf: Cluster, query: Query, now: datetime
) -> None:
    """Samples are written, the loop asks, a person approves, the route changes, and back."""
    set_key_grouping(operator, query, "random_choices", {"eps": 0.5})
    sf.refresh_from_db()
    Cluster.objects.filter(pk=sf.pk).update(applied_version=sf.routing_version)
    sf.refresh_from_db()
    update_policy(actor("admin", "boss"), sf, {"watch_skew": 0.02})
    assert record(sf, now + timedelta(seconds=10)) >= 1
    measured(sf, now + timedelta(seconds=10))
    watch_cluster(sf, now + timedelta(seconds=10))
    asked = newest(sf, "skew")
    assert (asked.code, asked.limit) == ("asked", 0.02)
    proposal = Proposal.objects.get(cluster=sf, origin="watch")
    assert (proposal.planner, proposal.parameters["limit"]) == ("partitioning", 0.01)
    computation.compute(proposal.pk)
    review_proposal(proposal.pk)
    proposal.refresh_from_db()
    assert newest(sf, "skew").code == "recommended"
    (action,) = [planned.action for planned in proposal.plan]
    assert isinstance(action, SetKeyGrouping)
    decisions.approve(approver, proposal, proposal.seal)
    carried_out(proposal)
    assert proposal.state == Proposal.State.DONE
    assert current_table(sf.pk).queries[query.pk].key_grouping == action.key_grouping
    query.refresh_from_db()
    assert query.key_grouping != "random_choices"
    control.roll_back(approver, proposal, proposal.seal, "not better")
    carried_out(proposal)
    assert proposal.state == Proposal.State.ROLLED_BACK
    assert current_table(sf.pk).queries[query.pk].key_grouping == RANDOM_CHOICES
    query.refresh_from_db()
    assert (query.key_grouping, query.key_grouping_parameters) == ("random_choices", {"eps": 0.5})
    assert [item[0].text for item in predictions(snapshot_of(sf))] == [RANDOM_CHOICES]
