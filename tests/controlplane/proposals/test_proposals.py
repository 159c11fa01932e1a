"""A proposal runs exactly as sealed, or is refused with what drifted."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Forbidden, Invalid, Unusable
from controlplane.models import AuditEntry, Cluster, Exclusion, Grant, Node, Proposal, Task
from controlplane.plans.plan import seal_of
from controlplane.processes.isolation.heartbeat import Heartbeat
from controlplane.proposals import claims, computation, decisions, requests, transitions
from controlplane.queries.spec import QuerySpec
from controlplane.topology import placement, queries
from controlplane.wire.query_text import QueryText
from tests.support.cluster import actor, placed, submit
from tests.support.execution import moved_names, moves_of
from tests.support.policies import set_policy
from tests.support.prepared import prepared

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


@pytest.fixture
def scattered(operator: Actor, sf: Cluster) -> Cluster:
    """Twelve queries on three streams, spread so that each stream is delivered to all nodes."""

    def make() -> Cluster:
        rows = placed(operator, sf, {f"q{i}": [f"s{i % 3}"] for i in range(12)})
        nodes = list(Node.objects.order_by("index"))
        for number, query in enumerate(rows):
            Task.objects.filter(query=query).update(node=nodes[number % 4])
        return sf

    prepared(__name__, make, operator.user.pk, sf.pk)
    return sf


def ready(operator: Actor, cluster: Cluster) -> Proposal:
    proposal = requests.request(operator, cluster, "mms", {})
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == "ready", proposal.error
    return proposal


def test_a_ready_proposal_holds_plan_bound_and_seal(operator: Actor, scattered: Cluster) -> None:
    """The plan is better than what runs and no better than the bound."""
    proposal = ready(operator, scattered)
    before, after = proposal.before, proposal.after
    assert after["replication_factor"] < before["replication_factor"]
    assert proposal.bounds["replication_factor"] <= after["replication_factor"] + 1e-9
    assert sum(after["loads"]) == 12
    assert after["traffic"] == pytest.approx(sum(after["rates"]))
    assert proposal.snapshot_row is not None
    assert proposal.seal == seal_of(proposal.plan, proposal.snapshot_row.digest)
    assert proposal.predicted["moves"] == proposal.rollback_cost["actions"] == len(proposal.actions)
    assert proposal.imbalance_after[-1] == pytest.approx(after["imbalance"], abs=1e-5)


def test_no_placement_moves_a_split_query(operator: Actor, scattered: Cluster) -> None:
    """It is on all nodes anyway: no plan for queries of one task speaks of it."""
    text = QueryText({"records": "count(*)"}, key=["car"])
    split = queries.submit(operator, scattered, QuerySpec("split", ["s0"], text=text, tasks=8))
    placement.place_pending(scattered.pk)
    proposal = ready(operator, scattered)
    assert split.pk in {query for query, *_ in proposal.snapshot.split}
    assert split.pk not in {move.query for move in moves_of(proposal)}


def test_moves_changed_behind_the_seal_are_refused(approver: Actor, scattered: Cluster) -> None:
    """The seal is recomputed: a row edited in the database is not what was approved."""
    proposal = ready(approver, scattered)
    move = moves_of(proposal)[0]
    other = move._replace(target=(move.target + 1) % 4)
    proposal.actions[0] = other.row()
    proposal.save()
    with pytest.raises(Conflict) as refused:
        decisions.approve(approver, proposal, proposal.seal)
    assert refused.value.code == "wrong_seal"


def _other_capacity(proposal: Proposal) -> None:
    Node.objects.filter(index=0).update(capacity=250)


def _lose_node(proposal: Proposal) -> None:
    Node.objects.filter(index=moves_of(proposal)[0].target).update(active=False)


def _move_elsewhere(proposal: Proposal) -> None:
    move = moves_of(proposal)[0]
    other = Node.objects.exclude(index__in=(move.source, move.target))[0]
    Task.objects.filter(query=move.query).update(node=other)


@pytest.mark.parametrize("drift", [_lose_node, _move_elsewhere, _other_capacity])
def test_a_proposal_that_no_longer_fits_is_stale_and_says_why(
    approver: Actor, scattered: Cluster, drift: Callable[[Proposal], None]
) -> None:
    """Refused with the drift in the data, and not approved."""
    proposal = ready(approver, scattered)
    drift(proposal)
    before = dict(Task.objects.values_list("query_id", "node__index"))
    with pytest.raises(Conflict) as refused:
        decisions.approve(approver, proposal, proposal.seal)
    assert refused.value.code == "stale"
    assert refused.value.data["exceeded"]
    proposal.refresh_from_db()
    assert proposal.state == "stale"
    assert proposal.drift == refused.value.data
    assert dict(Task.objects.values_list("query_id", "node__index")) == before


def test_a_proposal_is_decided_once(approver: Actor, scattered: Cluster) -> None:
    """Reject and approve are both conditional on ready, and say what is allowed instead."""
    proposal = ready(approver, scattered)
    decisions.reject(approver, proposal, "not during the fair")
    assert proposal.state == "rejected"
    with pytest.raises(Conflict) as refused:
        decisions.approve(approver, proposal, proposal.seal)
    assert refused.value.data == {"state": "rejected", "allowed": []}
    with pytest.raises(Conflict):
        decisions.reject(approver, proposal, "again")


def test_approval_is_noted_with_its_seal_and_can_be_taken_back(
    approver: Actor, scattered: Cluster
) -> None:
    proposal = ready(approver, scattered)
    decisions.approve(approver, proposal, proposal.seal, "as agreed")
    assert (proposal.state, proposal.approved_by) == ("approved", approver.name)
    noted = AuditEntry.objects.get(action="proposal.approve")
    assert (noted.seal, noted.reason) == (proposal.seal, "as agreed")
    assert (noted.before, noted.after) == ({"state": "ready"}, {"state": "approved"})
    decisions.withdraw(approver, proposal, "not yet")
    assert (proposal.state, proposal.approved_by) == ("ready", "")


def test_four_eyes_are_a_matter_of_the_policy_and_the_database(
    approver: Actor, operator: Actor, scattered: Cluster
) -> None:
    """Who asked may not approve, whatever code says so."""
    set_policy(scattered, four_eyes=True)
    own, other = ready(approver, scattered), ready(operator, scattered)
    assert "approve" not in {verb.name for verb in transitions.allowed_verbs(approver, own)}
    with pytest.raises(Conflict) as refused:
        decisions.approve(approver, own, own.seal)
    assert refused.value.code == "own_proposal"
    with pytest.raises(IntegrityError), transaction.atomic():
        Proposal.objects.filter(pk=own.pk).update(state="approved", approved_by=approver.name)
    decisions.approve(approver, other, other.seal)


def test_the_policy_says_who_approves(operator: Actor, scattered: Cluster) -> None:
    proposal = ready(operator, scattered)
    with pytest.raises(Forbidden):
        decisions.approve(operator, proposal, proposal.seal)
    set_policy(scattered, approvers="operator")
    decisions.approve(operator, proposal, proposal.seal)


def test_a_grant_on_one_cluster_is_none_on_another(operator: Actor, scattered: Cluster) -> None:
    other = Cluster.objects.create(slug="other", name="Other", slots=1)
    user = User.objects.create_user("anna")
    Grant.objects.create(user=user, cluster=other, role="admin", granted_at=timezone.now())
    proposal = ready(operator, scattered)
    with pytest.raises(Forbidden):
        decisions.approve(Actor(user), proposal, proposal.seal)
    Grant.objects.create(user=user, cluster=scattered, role="approver", granted_at=timezone.now())
    decisions.approve(Actor(user), proposal, proposal.seal)


def test_what_is_excluded_is_not_moved(operator: Actor, scattered: Cluster) -> None:
    moved = set(moved_names(ready(operator, scattered)))
    until = timezone.now() + timedelta(hours=1)
    for kind, subject in (("query", min(moved)), ("node", "node 3"), ("stream", "s1")):
        Exclusion.objects.create(
            cluster=scattered, kind=kind, subject=subject, reason="r", owner="o",
            created_at=timezone.now(), expires_at=until,
        )  # fmt: skip
    proposal = ready(operator, scattered)
    names = set(moved_names(proposal))
    assert names
    assert min(moved) not in names
    assert not names & {"q1", "q4", "q7", "q10"}
    assert 3 not in {n for move in moves_of(proposal) for n in (move.source, move.target)}
    assert proposal.predicted["left_out"] > 0


def test_a_cancelled_proposal_stops_computing(operator: Actor, scattered: Cluster) -> None:
    """The next heartbeat ends it, and nothing is saved over the decision."""
    proposal = requests.request(operator, scattered, "mms", {})
    claimed = claims.claim(proposal.pk)
    assert claimed is not None
    heartbeat = Heartbeat(lambda: claims.owned(claimed))
    assert heartbeat(0.5)
    decisions.cancel(operator, proposal)
    assert not heartbeat(0.6)
    computation.compute(proposal.pk)
    proposal.refresh_from_db()
    assert (proposal.state, proposal.progress) == ("rejected", 0.5)


@pytest.mark.parametrize(
    ("planner", "code"),
    [
        ("placement", "no_query"),
        ("migration", "no_split_query"),
        ("partitioning", "no_split_query"),
        ("admission", "no_capacity"),
        ("shedding", "no_query"),
    ],
)
def test_a_planner_that_the_cluster_cannot_use_is_refused_with_what_is_missing(
    operator: Actor, sf: Cluster, planner: str, code: str
) -> None:
    with pytest.raises(Unusable) as refused:
        requests.request(operator, sf, planner=planner)
    assert (refused.value.code, list(refused.value.fields)) == (code, ["planner"])
    assert not Proposal.objects.exists()
    offered = {row.adapter.name: row.missing for row in requests.offered_planners(sf)}
    missing = offered[planner]
    assert missing is not None
    assert missing.code == code


@pytest.mark.parametrize(
    ("algorithm", "parameters", "field"),
    [
        ("nonsense", {}, "algorithm"),
        ("mms", {"nu": -1}, "nu"),
        ("mms", {"nu": "much"}, "nu"),
        ("mms", {"unknown": 1}, "unknown"),
    ],
)
def test_bad_requests_name_the_field(
    operator: Actor, sf: Cluster, algorithm: str, parameters: dict[str, object], field: str
) -> None:
    """Nothing is queued that cannot run."""
    with pytest.raises(Invalid) as refused:
        requests.request(operator, sf, algorithm, parameters)
    assert list(refused.value.fields) == [field]
    assert not Proposal.objects.exists()


def test_pending_queries_are_not_in_the_snapshot(operator: Actor, scattered: Cluster) -> None:
    """Only what runs can move."""
    submit(actor("operator", "other"), scattered, {"waiting": ["s0"]})
    assert len(ready(operator, scattered).snapshot.queries) == 12
