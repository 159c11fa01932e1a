"""Proposals of the shedding planner, from measurements to the routing table and back."""

from dataclasses import replace
from datetime import datetime

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Invalid, Unusable
from controlplane.models import ArmedLadder, Cluster, Node, Proposal, Query
from controlplane.planners.shedding.inputs import SheddingInput
from controlplane.planners.shedding.observation import read_input
from controlplane.planning.adapters import adapter_of
from controlplane.planning.snapshots import take_snapshot
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.policies.auto_approval import decide_auto_approval
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import update_policy
from controlplane.proposals import computation, decisions, requests
from controlplane.proposals.executions import control
from controlplane.topology.rows import current_table
from controlplane.wire.routing.cluster_actions import SetLadder
from tests.support.admission import arrived
from tests.support.cluster import actor, placed, placed_split
from tests.support.execution import carried_out
from tests.support.watching import measured

pytestmark = pytest.mark.django_db(transaction=True)
PERIODS = 20


@pytest.fixture
def busy(operator: Actor, sf: Cluster, now: datetime) -> Query:
    """A query of 8 tasks and one of a task; nodes need a millisecond per record."""
    query = placed_split(operator, sf, "q", "key")
    placed(operator, sf, {"whole": ["s2"]})
    rates = {"s0": 300.0, "s1": 100.0, "s2": 200.0}
    arrived(sf, now, {name: [rate] * PERIODS for name, rate in rates.items()})
    measured(
        sf, now, loads=[500.0] * 4, busy=[0.6, 0.5, 0.5, 0.5],
        merged=[180.0, 0.0, 0.0, 0.0], merge_busy=[0.1, 0.0, 0.0, 0.0],
    )  # fmt: skip
    Cluster.objects.filter(pk=sf.pk).update(applied_version=sf.routing_version, desired="running")
    sf.refresh_from_db()
    return query


def proposed(by: Actor, cluster: Cluster) -> Proposal:
    cluster.refresh_from_db()
    proposal = requests.request(by, cluster, "", {}, planner="shedding")
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    return proposal


def test_rates_costs_and_weights_are_read(sf: Cluster, busy: Query, now: datetime) -> None:
    Query.objects.filter(pk=busy.pk).update(shedding_weight=3.0, shedding_floor=0.25)
    given = read_input(sf, now)
    assert sorted((row.name, row.rate) for row in given.streams) == [
        ("s0", 300.0), ("s1", 100.0), ("s2", 200.0),
    ]  # fmt: skip
    split, whole = given.queries
    assert (split.id, split.weight, split.floor) == (busy.pk, 3.0, 0.25)
    assert (split.window_ms, split.slide_ms, bool(split.routing)) == (60_000, 60_000, True)
    assert (whole.routing, whole.shared) == ("", whole.id)
    assert [node.seconds for node in given.nodes] == [0.001] * 4
    assert (given.split_seconds, given.merge_s) == (None, round(0.1 / 180, 9))
    assert given.partials_per_record == pytest.approx(180 / 400)
    snapshot = take_snapshot(sf.pk, 0.1, {read_input})
    stored = ClusterSnapshot.from_json(snapshot.to_json())
    assert stored.input(SheddingInput) == snapshot.input(SheddingInput)
    assert take_snapshot(sf.pk, 0.1).to_json()["inputs"] == {}


def test_emulated_nodes_cost_what_their_capacity_leaves(
    sf: Cluster, busy: Query, now: datetime
) -> None:
    Node.objects.filter(cluster=sf, index=1).update(emulated=True, capacity=250)
    nodes = {node.node: (node.seconds, node.emulated) for node in read_input(sf, now).nodes}
    assert nodes[1] == (0.004, True)
    assert nodes[0] == (0.001, False)


def test_a_proposal_arms_and_disarms_a_ladder(
    operator: Actor, approver: Actor, sf: Cluster, busy: Query
) -> None:
    proposal = proposed(operator, sf)
    assert proposal.state == Proposal.State.READY, proposal.error
    (action,) = [planned.action for planned in proposal.plan]
    assert isinstance(action, SetLadder)
    assert action.ladder is not None
    assert proposal.before["quality_lost"] is None
    assert 0 < proposal.after["quality_lost"] < 0.5
    assert proposal.after["rungs"] == len(action.ladder.rungs) > 0
    assert proposal.before["input_factor"] == proposal.after["input_factor"] < 1
    # Recorded and applied without a person by default.
    assert decide_auto_approval(proposal, PolicySettings()).allowed
    decisions.approve(approver, proposal, seal=proposal.seal)
    carried_out(proposal)
    assert proposal.state == Proposal.State.DONE
    assert current_table(sf.pk).ladder == action.ladder
    row = ArmedLadder.objects.get(cluster=sf)
    assert (row.value, row.snapshot_id) == (action.ladder, proposal.snapshot_row_id)
    snapshot = take_snapshot(sf.pk, 0.1, {read_input})
    assert (
        replace(ClusterSnapshot.from_json(snapshot.to_json()), inputs=snapshot.inputs) == snapshot
    )
    control.roll_back(approver, proposal, proposal.seal, "try it")
    carried_out(proposal)
    assert current_table(sf.pk).ladder is None
    assert not ArmedLadder.objects.filter(cluster=sf).exists()


def test_a_proposal_without_measurements_fails_by_name(operator: Actor, sf: Cluster) -> None:
    with pytest.raises(Unusable) as refused:
        proposed(operator, sf)
    assert refused.value.code == "no_query"
    placed(operator, sf, {"q": ["s0"]})
    # The stream has a declared rate, but the cost of a record is not known.
    assert "node 0" in proposed(operator, sf).error


def test_the_policy_sets_the_ladder(operator: Actor, sf: Cluster, busy: Query) -> None:
    changes = {
        "shedding_limit": 0.5,
        "shedding_rungs": 2,
        "shedding_hold_s": 7.0,
        "shedding_max_factor": 2.0,
    }
    update_policy(actor("admin"), sf, changes)
    (action,) = [planned.action for planned in proposed(operator, sf).plan]
    assert isinstance(action, SetLadder)
    assert action.ladder is not None
    ladder = action.ladder
    assert (ladder.limit, ladder.hold_ms, len(ladder.rungs) <= 2) == (0.5, 7_000, True)
    assert ladder.rungs[-1].factor == pytest.approx(2.0)


def test_only_the_linear_program_plans_ladders(operator: Actor, sf: Cluster, busy: Query) -> None:
    assert [algorithm.name for algorithm in adapter_of("shedding").algorithms] == ["lp"]
    with pytest.raises(Invalid) as invalid:
        requests.request(operator, sf, "c_fit", {}, planner="shedding")
    assert list(invalid.value.fields) == ["algorithm"]
