"""Proposals of the admission planner that scale queries, from measurements to the routing table."""

from datetime import datetime, timedelta

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Node, Proposal, Query
from controlplane.planners.admission.inputs import AdmissionInput, AggregatedQuery, MeasuredCosts
from controlplane.planners.admission.observation import read_input
from controlplane.planning.snapshots import take_snapshot
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.policies.auto_approval import decide_auto_approval
from controlplane.policies.exclusions import add_exclusion
from controlplane.policies.settings import PolicySettings
from controlplane.proposals import computation, decisions, requests
from controlplane.topology.rows import current_table
from controlplane.wire.routing.query_actions import SetAggregators, SetTaskCount
from tests.support.admission import arrived
from tests.support.cluster import placed_split
from tests.support.execution import carried_out
from tests.support.watching import measured

pytestmark = pytest.mark.django_db(transaction=True)
PERIODS = 20


@pytest.fixture
def query(operator: Actor, sf: Cluster, now: datetime) -> Query:
    """A query of 8 tasks and 9,000 records/s, of which a node processes 1,000 when it is busy."""
    query = placed_split(operator, sf, "q", "key")
    arrived(sf, now, {"s0": [6_000.0] * PERIODS, "s1": [3_000.0] * PERIODS})
    measured(
        sf, now, loads=[500.0] * 4, busy=[0.6, 0.5, 0.5, 0.5],
        merged=[1_800.0, 0.0, 0.0, 0.0], merge_busy=[0.1, 0.0, 0.0, 0.0],
    )  # fmt: skip
    Cluster.objects.filter(pk=sf.pk).update(applied_version=sf.routing_version, desired="running")
    return query


def proposed(by: Actor, cluster: Cluster, **parameters: float) -> Proposal:
    cluster.refresh_from_db()
    proposal = requests.request(by, cluster, "parallelism", parameters, planner="admission")
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    return proposal


def test_costs_are_read_from_the_recent_samples(sf: Cluster, query: Query, now: datetime) -> None:
    given = read_input(sf, now)
    assert given.interval_s == 1.0
    assert given.costs == MeasuredCosts(0.001, round(0.1 / 1_800, 9), 0.2)
    streams = sorted(sf.streams.filter(name__in=("s0", "s1")).values_list("id", flat=True))
    assert given.queries == [AggregatedQuery(query.pk, streams)]
    assert read_input(sf, now + timedelta(minutes=5)).costs == MeasuredCosts()
    snapshot = take_snapshot(sf.pk, 0.1, {read_input})
    stored = ClusterSnapshot.from_json(snapshot.to_json())
    assert stored.input(AdmissionInput) == snapshot.input(AdmissionInput)


def test_emulated_nodes_cost_what_their_capacity_leaves(
    sf: Cluster, query: Query, now: datetime
) -> None:
    Node.objects.filter(cluster=sf).update(emulated=True, capacity=250)
    assert read_input(sf, now).costs.operator_s == 0.004


def test_an_approved_proposal_scales_the_query(
    operator: Actor, approver: Actor, sf: Cluster, query: Query
) -> None:
    proposal = proposed(operator, sf)
    assert proposal.state == Proposal.State.READY, proposal.error
    actions = [planned.action for planned in proposal.plan]
    assert [type(action) for action in actions] == [SetTaskCount]
    assert proposal.before["query_overload"] == pytest.approx(9_000 - 8 * 900)
    assert proposal.after["query_overload"] == 0
    decisions.approve(approver, proposal, proposal.seal)
    carried_out(proposal)
    query.refresh_from_db()
    assert query.task_count == 10
    assert len(current_table(sf.pk).queries[query.pk].owners()) == 10


def test_no_policy_approves_it_automatically(operator: Actor, sf: Cluster, query: Query) -> None:
    """A policy that approves redirections was not written for changes of queries."""
    policy = PolicySettings(auto_kinds=["admission"], auto_asked=True)
    decision = decide_auto_approval(proposed(operator, sf), policy)
    assert (decision.allowed, decision.code) == (False, "kind")
    title = "Numbers of query and aggregator nodes"
    assert decision.text == f"a person approves plans of the algorithm “{title}”"


def test_aggregator_nodes_are_added_beside_the_tasks(
    operator: Actor, sf: Cluster, query: Query, now: datetime
) -> None:
    measured(
        sf, now, loads=[0.0, 500.0, 500.0, 500.0], busy=[0.9, 0.5, 0.5, 0.5],
        merged=[1_800.0, 0.0, 0.0, 0.0], merge_busy=[0.9, 0.0, 0.0, 0.0],
    )  # fmt: skip
    proposal = proposed(operator, sf)
    assert proposal.state == Proposal.State.READY, proposal.error
    assert [type(planned.action) for planned in proposal.plan] == [SetTaskCount, SetAggregators]


def test_a_latency_bound_at_the_interval_fails_with_the_reason(
    operator: Actor, sf: Cluster, query: Query
) -> None:
    proposal = proposed(operator, sf, latency_s=1.0)
    assert proposal.state == Proposal.State.FAILED
    assert "must exceed the interval of micro-batches" in proposal.error


def test_without_measured_costs_the_proposal_fails(
    operator: Actor, sf: Cluster, query: Query, now: datetime
) -> None:
    measured(sf, now)
    proposal = proposed(operator, sf)
    assert proposal.state == Proposal.State.FAILED
    assert "The time that a node needs per record is not measured" in proposal.error


def test_an_excluded_query_stays(operator: Actor, sf: Cluster, query: Query, now: datetime) -> None:
    add_exclusion(operator, sf, "query", "q", "kept", now + timedelta(hours=1))
    proposal = proposed(operator, sf)
    assert proposal.state == Proposal.State.NO_BETTER_PLAN, proposal.error
    assert len(proposal.plan) == 0
