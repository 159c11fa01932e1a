"""Moves that a person chose are a proposal: computed, approved and rolled back as any other."""

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Invalid
from controlplane.models import AuditEntry, Cluster, Proposal, Query
from controlplane.policies.auto_approval import decide_auto_approval
from controlplane.proposals import computation, decisions, requests
from controlplane.proposals.executions import control, progression
from controlplane.proposals.review import review
from tests.support.cluster import placed_split
from tests.support.execution import carried_out, moved_names, moves_of, nodes_of, scattered

pytestmark = pytest.mark.django_db(transaction=True)


def computed(proposal: Proposal) -> Proposal:
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    return proposal


def test_queries_move_to_the_chosen_node_and_back(
    operator: Actor, approver: Actor, sf: Cluster
) -> None:
    cluster = scattered(operator, sf)
    before = nodes_of()
    names = ["q0", "q1", "q3", "q2"]
    proposal = computed(requests.request_moves(operator, cluster, names, 2, "node 2 is idle"))
    assert (proposal.state, proposal.planner, proposal.error) == ("ready", "manual", "")
    # The query that runs there stays; the rows are the moves of the others.
    assert sorted(moved_names(proposal)) == ["q0", "q1", "q3"]
    assert {move.target for move in moves_of(proposal)} == {2}
    assert proposal.seal
    assert proposal.rollback_cost["actions"] == 3
    entry = AuditEntry.objects.get(action="proposal.request")
    assert entry.reason == "node 2 is idle"
    decisions.approve(approver, proposal, proposal.seal)
    execution = carried_out(proposal)
    moved = {move.query for move in moves_of(proposal)}
    assert (proposal.state, execution.done) == ("done", 3)
    assert {query: node for query, node in nodes_of().items() if query in moved} == dict.fromkeys(
        moved, 2
    )
    roll_back = control.verb_at("roll-back")
    control.apply_verb(operator, proposal, roll_back, seal=proposal.seal, reason="slower")
    progression.advance(proposal.pk)
    carried_out(proposal)
    assert (proposal.state, nodes_of()) == ("rolled back", before)


def test_no_policy_approves_it_and_no_gain_locks_it(operator: Actor, sf: Cluster) -> None:
    """A person has other purposes than a measure."""
    cluster = scattered(operator, sf)
    proposal = computed(requests.request_moves(operator, cluster, ["q0", "q1"], 3))
    assert decide_auto_approval(proposal).allowed is False
    assert review(proposal).gain_lost is None


def test_moves_are_requested_again_for_the_present_state(operator: Actor, sf: Cluster) -> None:
    cluster = scattered(operator, sf)
    first = computed(requests.request_moves(operator, cluster, ["q0", "q1"], 3))
    Query.objects.filter(name="q0").update(state="ended")
    again = computed(requests.request_again(operator, first))
    assert (again.base, moved_names(again)) == (first, ["q1"])
    Query.objects.filter(name="q1").update(state="ended")
    failed = computed(requests.request_again(operator, again))
    assert (failed.state, failed.error_code) == ("failed", "no_query")


def test_what_cannot_move_is_refused(operator: Actor, sf: Cluster) -> None:
    cluster = scattered(operator, sf)
    split = placed_split(operator, cluster)
    with pytest.raises(Invalid) as refused:
        requests.request_moves(operator, cluster, ["q0", split.name, "odd"], 1)
    first, second = refused.value.fields["queries"]
    assert (f"{split.name} has" in first, second) == (True, "odd does not run")
    for names, node in ((["q0"], 99), ([], 1)):
        with pytest.raises(Invalid):
            requests.request_moves(operator, cluster, names, node)
    cluster.nodes.filter(index=1).update(active=False)
    with pytest.raises(Invalid) as inactive:
        requests.request_moves(operator, cluster, ["q0"], 1)
    assert inactive.value.fields == {"node": ["The cluster has no active node 1"]}
    assert not Proposal.objects.exists()
    with pytest.raises(Invalid):
        requests.request(operator, cluster, "moves", {}, planner="manual")
