"""A proposal runs exactly as sealed, or is refused with what drifted."""

from collections.abc import Callable

import pytest

from controlplane.errors import Conflict, Forbidden, Invalid
from controlplane.models import AuditEntry, Cluster, Node, Proposal, Query, Task
from controlplane.problems.snapshot import seal_of
from controlplane.services import placing, proposals, queries, routing
from controlplane.services.access import Actor
from controlplane.services.proposals import computing
from controlplane.services.queries import QuerySpec
from controlplane.wire.query import QueryText
from tests.support.cluster import actor, placed, submit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scattered(operator: Actor, sf: Cluster) -> Cluster:
    """Twelve queries on three streams, spread so that each stream is delivered to all nodes."""
    rows = placed(operator, sf, {f"q{i}": [f"s{i % 3}"] for i in range(12)})
    nodes = list(Node.objects.order_by("index"))
    for number, query in enumerate(rows):
        Task.objects.filter(query=query).update(node=nodes[number % 4])
    return sf


def ready(operator: Actor, cluster: Cluster) -> Proposal:
    proposal = proposals.request(operator, cluster, "mms", {})
    proposals.compute(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == "ready", proposal.error
    return proposal


def test_a_ready_proposal_holds_plan_bound_and_seal(operator: Actor, scattered: Cluster) -> None:
    """The plan is better than what runs and no better than the bound."""
    proposal = ready(operator, scattered)
    before, after = proposal.before, proposal.after
    assert after["replication_factor"] < before["replication_factor"]
    assert proposal.lower_bound is not None
    assert proposal.lower_bound <= after["replication_factor"] + 1e-9
    assert sum(after["loads"]) == 12
    assert after["traffic"] == pytest.approx(sum(after["rates"]))
    assert proposal.seal == seal_of(proposal.moves, proposal.snapshot)


def test_the_same_plan_moves_nothing_twice(operator: Actor, scattered: Cluster) -> None:
    """Servers are numbered by overlap: planning anew what was just applied moves no query."""
    first = ready(operator, scattered)
    assert first.moves
    proposals.apply(operator, first, first.seal)
    assert ready(operator, scattered).moves == []


def test_applying_moves_exactly_the_sealed_queries(operator: Actor, scattered: Cluster) -> None:
    """One version, every moved query on its new node, its run going on; done when acknowledged."""
    proposal = ready(operator, scattered)
    before = dict(Task.objects.values_list("query_id", "node__index"))
    applied = proposals.apply(operator, proposal, proposal.seal)
    assert applied.state == "applying"
    assert {move["outcome"] for move in applied.moves} == {"moved"}
    after = dict(Task.objects.values_list("query_id", "node__index"))
    assert {q for q in after if after[q] != before[q]} == {m["query"] for m in applied.moves}
    assert all(after[move["query"]] == move["to"] for move in applied.moves)
    runs = Query.objects.filter(pk__in=[move["query"] for move in applied.moves])
    assert set(runs.values_list("run", flat=True)) == {0}
    version = applied.routing_versions.get().version
    assert proposals.finish(scattered.pk, version - 1) == 0
    assert proposals.finish(scattered.pk, version) == 1
    applied.refresh_from_db()
    assert applied.state == "done"
    assert AuditEntry.objects.filter(action="proposal.apply").count() == 1


def test_the_deltas_lead_to_the_stored_tasks_after_moves(
    operator: Actor, scattered: Cluster
) -> None:
    """The moves in the log mean what the rows say, and hand every query's state on."""
    table = routing.current_table(scattered.pk)
    proposal = ready(operator, scattered)
    applied = proposals.apply(operator, proposal, proposal.seal)
    delta = routing.delta_of(applied.routing_versions.get())
    after = table.apply(delta)
    assert after == routing.current_table(scattered.pk)
    was, is_now = table.queries, after.queries
    moved = {(q, was[q].node, is_now[q].node) for q in was if was[q].node != is_now[q].node}
    assert moved == {(move["query"], move["from"], move["to"]) for move in applied.moves}
    # A new run would begin without the state.
    assert all(was[query].run == is_now[query].run for query in was)


def test_a_split_query_stays_where_it_is(operator: Actor, scattered: Cluster) -> None:
    """It is on all nodes anyway: no plan speaks of it, and its coming makes none stale."""
    first = ready(operator, scattered)
    text = QueryText({"records": "count(*)"}, key=["car"])
    split = queries.submit(operator, scattered, QuerySpec("split", ["s0"], text=text, tasks=8))
    placing.drain(scattered.pk)
    spans = routing.current_table(scattered.pk).queries[split.pk].spans
    assert len(spans) == 4
    assert split.pk not in {query for query, *_ in ready(operator, scattered).snapshot["queries"]}
    assert proposals.apply(operator, first, first.seal).state == "applying"
    assert routing.current_table(scattered.pk).queries[split.pk].spans == spans


def test_nothing_to_move_is_done_at_once(operator: Actor, scattered: Cluster) -> None:
    """No version is made for no change: all queries to move have ended."""
    proposal = ready(operator, scattered)
    queries.end(operator, scattered, [move["name"] for move in proposal.moves])
    placing.drain(scattered.pk)
    scattered.refresh_from_db()
    version = scattered.routing_version
    assert proposals.apply(operator, proposal, proposal.seal).state == "done"
    scattered.refresh_from_db()
    assert scattered.routing_version == version


def test_a_wrong_seal_is_refused(operator: Actor, scattered: Cluster) -> None:
    """Approval names the moves, not the row."""
    proposal = ready(operator, scattered)
    with pytest.raises(Conflict) as refused:
        proposals.apply(operator, proposal, "0" * 64)
    assert refused.value.code == "wrong_seal"


def test_moves_changed_behind_the_seal_are_refused(operator: Actor, scattered: Cluster) -> None:
    """The seal is recomputed: a row edited in the database is not what was approved."""
    proposal = ready(operator, scattered)
    proposal.moves[0]["to"] = (proposal.moves[0]["to"] + 1) % 4
    proposal.save()
    with pytest.raises(Conflict) as refused:
        proposals.apply(operator, proposal, proposal.seal)
    assert refused.value.code == "wrong_seal"


def _end_one(operator: Actor, cluster: Cluster, proposal: Proposal) -> None:
    queries.end(operator, cluster, [proposal.moves[0]["name"]])
    placing.drain(cluster.pk)


def _submit_one(operator: Actor, cluster: Cluster, proposal: Proposal) -> None:
    placed(operator, cluster, {"late": ["s5"]})


@pytest.mark.parametrize("drift", [_end_one, _submit_one])
def test_ended_and_new_queries_do_not_make_it_stale(
    operator: Actor, scattered: Cluster, drift: Callable[[Actor, Cluster, Proposal], None]
) -> None:
    """Queries come and go all day; the rest of the moves still mean what was approved."""
    proposal = ready(operator, scattered)
    drift(operator, scattered, proposal)
    applied = proposals.apply(operator, proposal, proposal.seal)
    assert applied.state == "applying"
    assert {move["outcome"] for move in applied.moves} <= {"moved", "ended"}


def _lose_node(proposal: Proposal) -> None:
    Node.objects.filter(index=proposal.moves[0]["to"]).update(active=False)


def _move_elsewhere(proposal: Proposal) -> None:
    move = proposal.moves[0]
    other = Node.objects.exclude(index__in=(move["from"], move["to"]))[0]
    Task.objects.filter(query=move["query"]).update(node=other)


@pytest.mark.parametrize("drift", [_lose_node, _move_elsewhere])
def test_a_proposal_that_no_longer_fits_is_stale_and_says_why(
    operator: Actor, scattered: Cluster, drift: Callable[[Proposal], None]
) -> None:
    """Refused with the drift in the data, and nothing has moved."""
    proposal = ready(operator, scattered)
    drift(proposal)
    before = dict(Task.objects.values_list("query_id", "node__index"))
    with pytest.raises(Conflict) as refused:
        proposals.apply(operator, proposal, proposal.seal)
    assert refused.value.code == "stale"
    assert refused.value.data["gone_nodes"] or refused.value.data["moved"]
    proposal.refresh_from_db()
    assert proposal.state == "stale"
    assert dict(Task.objects.values_list("query_id", "node__index")) == before


def test_one_proposal_is_applied_at_a_time(operator: Actor, scattered: Cluster) -> None:
    """The second waits until the pipeline runs with the first, and stays ready."""
    first = ready(operator, scattered)
    other = ready(operator, scattered)
    Proposal.objects.filter(pk=first.pk).update(state="applying")
    with pytest.raises(Conflict) as refused:
        proposals.apply(operator, other, other.seal)
    assert refused.value.code == "another_applying"
    other.refresh_from_db()
    assert other.state == "ready"


def test_an_applied_proposal_supersedes_those_about_the_same_queries(
    operator: Actor, scattered: Cluster
) -> None:
    """Their moves start from where the queries no longer are."""
    first, second = ready(operator, scattered), ready(operator, scattered)
    proposals.apply(operator, second, second.seal)
    first.refresh_from_db()
    assert first.state == "superseded"


def test_a_proposal_is_decided_once(operator: Actor, scattered: Cluster) -> None:
    """Reject and apply are both conditional on ready."""
    proposal = ready(operator, scattered)
    proposals.reject(operator, proposal, "not during the fair")
    assert proposal.state == "rejected"
    with pytest.raises(Conflict):
        proposals.apply(operator, proposal, proposal.seal)
    with pytest.raises(Conflict):
        proposals.reject(operator, proposal, "again")


def test_a_rejection_needs_a_reason(operator: Actor, scattered: Cluster) -> None:
    """Those who ask later find it in the audit log."""
    with pytest.raises(Invalid):
        proposals.reject(operator, ready(operator, scattered), " ")


def test_a_viewer_may_not_request_or_apply(
    operator: Actor, viewer: Actor, scattered: Cluster
) -> None:
    """Looking is not deciding."""
    with pytest.raises(Forbidden):
        proposals.request(viewer, scattered, "mms", {})
    proposal = ready(operator, scattered)
    with pytest.raises(Forbidden):
        proposals.apply(viewer, proposal, proposal.seal)


def test_a_cancelled_proposal_stops_computing(
    operator: Actor, scattered: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planner's next report of progress ends it, and nothing is saved over the decision."""
    monkeypatch.setattr(computing, "PROGRESS_EVERY_S", 0.0)
    proposal = proposals.request(operator, scattered, "mms", {})
    report = computing._progress_of(proposal)
    report(0.5)
    proposals.cancel(operator, proposal)
    with pytest.raises(computing.Cancelled):
        report(0.6)
    proposals.compute(proposal.pk)
    proposal.refresh_from_db()
    assert (proposal.state, proposal.progress) == ("rejected", 0.5)


def test_nothing_to_place_fails_with_a_reason(operator: Actor, sf: Cluster) -> None:
    """An empty cluster is no crash."""
    proposal = proposals.request(operator, sf, "mms", {})
    proposals.compute(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == "failed"
    assert "No query runs" in proposal.error


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
        proposals.request(operator, sf, algorithm, parameters)
    assert list(refused.value.fields) == [field]
    assert not Proposal.objects.exists()


def test_pending_queries_are_not_in_the_snapshot(operator: Actor, scattered: Cluster) -> None:
    """Only what runs can move."""
    submit(actor("operator", "other"), scattered, {"waiting": ["s0"]})
    assert len(ready(operator, scattered).snapshot["queries"]) == 12
