"""Approved moves are carried out step by step, exactly once, and the way back is open."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.errors import Away, Conflict, Invalid, VersionMoved
from controlplane.models import AuditEntry, Cluster, Execution, Node, Proposal, RoutingVersion, Step
from controlplane.proposals import computation, decisions, requests, transitions
from controlplane.proposals.executions import control, progression, steps
from controlplane.proposals.executions.progress import progress_of
from controlplane.topology import placement, queries, rows
from tests.support.cluster import replayed_table
from tests.support.execution import (
    batch,
    begun,
    carried_out,
    moved_names,
    moves_of,
    nodes_of,
    ready,
    scattered,
    under_way,
)
from tests.support.policies import set_policy

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def test_all_moves_are_made_in_steps_and_nothing_else(approver: Actor, cluster: Cluster) -> None:
    before = nodes_of()
    proposal = begun(approver, cluster)
    execution = carried_out(proposal)
    assert proposal.state == "done"
    assert execution.finished_at is not None
    after = nodes_of()
    assert {q for q in after if after[q] != before[q]} == {m.query for m in moves_of(proposal)}
    assert all(after[move.query] == move.target for move in moves_of(proposal))
    steps = list(execution.steps.order_by("number"))
    assert [one.tasks for one in steps][:2] == [1, 2]
    assert sum(one.tasks for one in steps) == len(proposal.actions)
    assert len(steps) == proposal.predicted["steps"], "the slow start is foreseen"
    assert all((one.bytes, one.pause_ms) == (1000 * one.tasks, 700) for one in steps)
    assert replayed_table(cluster) == rows.current_table(cluster.pk)


def test_every_step_is_one_version_that_names_its_proposal(
    approver: Actor, cluster: Cluster
) -> None:
    proposal = begun(approver, cluster)
    execution = carried_out(proposal)
    versions = RoutingVersion.objects.filter(proposal=proposal).order_by("version")
    steps = execution.steps.order_by("number").values_list("version__version", flat=True)
    assert list(versions.values_list("version", flat=True)) == list(steps)
    actions = AuditEntry.objects.filter(object=str(proposal)).order_by("id")
    assert list(actions.values_list("action", flat=True)) == [
        "proposal.request", "proposal.computed", "proposal.approve", "proposal.start",
        "proposal.finish",
    ]  # fmt: skip
    assert set(actions[1:].values_list("seal", flat=True)) == {proposal.seal}


def test_each_operation_returns_the_changed_proposal(approver: Actor, cluster: Cluster) -> None:
    proposal = begun(approver, cluster)
    assert control.pause(approver, proposal, "a call").state == "paused"
    assert control.resume(approver, proposal).state == "executing"
    assert control.finish_step(approver, proposal, "enough").state == "executing"
    batch(cluster, _step(proposal))
    progression.advance(proposal.pk)
    proposal.refresh_from_db()
    assert proposal.state == "stopped"
    execution = Execution.objects.get(proposal=proposal)
    assert execution.last_step is False
    (move,) = moves_of(proposal)[:1]
    back_to = move._replace(source=move.target, target=move.source)
    assert steps.rollback_of(execution) == [back_to]
    back = control.roll_back(approver, proposal, proposal.seal, "worse")
    assert back.state == "rolling back"


def test_a_skipped_action_does_not_end_its_step(approver: Actor, cluster: Cluster) -> None:
    """The step has the actions after it; all keep their places in the plan."""
    proposal = ready(approver, cluster)
    queries.end(approver, cluster, moved_names(proposal)[:1])
    selection = steps.select(cluster, proposal.plan, 3)
    assert selection.skipped == [(3, "ended")]
    assert list(selection.actions) == list(range(4, 3 + len(proposal.plan)))
    assert selection.tasks == len(selection.actions)


def test_a_lease_keeps_others_out_until_it_expires(approver: Actor, cluster: Cluster) -> None:
    """A worker that was killed is followed by another."""
    proposal = begun(approver, cluster)
    batch(cluster, _step(proposal))
    held = Execution.objects.filter(proposal=proposal)
    held.update(lease_owner="gone", lease_until=timezone.now() + timedelta(seconds=60))
    progression.advance(proposal.pk)
    assert under_way(proposal) is None
    held.update(lease_until=timezone.now() - timedelta(seconds=1))
    progression.advance(proposal.pk)
    assert under_way(proposal) is not None


def test_the_next_step_waits_for_the_pipeline(approver: Actor, cluster: Cluster) -> None:
    """A version that runs is not enough: the state has to have come."""
    proposal = begun(approver, cluster)
    step = _step(proposal)
    Cluster.objects.filter(pk=cluster.pk).update(applied_version=999)
    progression.advance(proposal.pk)
    assert Step.objects.count() == 1
    batch(cluster, step)
    progression.advance(proposal.pk)
    assert Step.objects.count() == 2


def test_the_cap_grows_by_one_and_is_halved_when_latency_breaks_its_bound(
    approver: Actor, operator: Actor, sf: Cluster
) -> None:
    set_policy(sf, cluster_moves=8, latency_ms=1000)
    proposal = begun(approver, scattered(operator, sf, 40))
    caps = []
    for p95 in (300, 300, 5000):
        step = _step(proposal)
        batch(sf, step, p95=p95)
        execution = Execution.objects.get(proposal=proposal)
        caps.append((step.cap, execution.cap))
        if p95 == 300:
            progression.advance(proposal.pk)
    assert caps == [(2, 3), (3, 4), (4, 2)]
    assert execution.cap_reason == "halved to 2: p95 latency 5.0 s is above 1.0 s"
    assert execution.not_before is not None
    progression.advance(proposal.pk)
    assert under_way(proposal) is None, "it waits for the latency to come down"


def test_pause_resume_and_stop(approver: Actor, operator: Actor, cluster: Cluster) -> None:
    proposal = begun(approver, cluster)
    with pytest.raises(Invalid):
        control.finish_step(operator, proposal, " ")
    control.pause(operator, proposal)
    assert proposal.unexplained == "pause"
    with pytest.raises(Invalid):
        control.add_reason(operator, proposal, " ")
    assert control.add_reason(operator, proposal, "a call") is proposal
    entry = AuditEntry.objects.get(action="proposal.pause_reason")
    assert (entry.object, entry.reason) == (str(proposal), "a call")
    with pytest.raises(Conflict) as explained:
        control.add_reason(operator, proposal, "another call")
    assert explained.value.code == "no_reason_needed"
    batch(cluster, _step(proposal))
    progression.advance(proposal.pk)
    assert (proposal.state, Step.objects.count()) == ("paused", 1)
    control.resume(operator, proposal)
    progression.advance(proposal.pk)
    assert Step.objects.count() == 2
    control.stop(operator, proposal, "enough")
    assert proposal.unexplained == "", "the reason came with it"
    batch(cluster, _step(proposal))
    progression.advance(proposal.pk)
    assert (proposal.state, Step.objects.count()) == ("stopped", 2)
    with pytest.raises(Conflict) as refused:
        control.resume(operator, proposal)
    assert refused.value.data["allowed"] == ["roll back"]


@pytest.mark.parametrize("steps", [1, 3, None])
def test_rolling_back_moves_back_what_has_moved(
    approver: Actor, operator: Actor, cluster: Cluster, steps: int | None
) -> None:
    """From the middle or from the end, the last move first."""
    before = nodes_of()
    proposal = begun(approver, cluster)
    for _ in range(steps or 0):
        batch(cluster, _step(proposal))
        progression.advance(proposal.pk)
    execution = carried_out(proposal) if steps is None else _execution(proposal)
    done = execution.done
    assert execution.rollback_cost["actions"] == done
    control.roll_back(operator, proposal, proposal.seal, "worse than thought")
    step = under_way(proposal)
    if step is not None:
        batch(cluster, step)
    execution = carried_out(proposal)
    assert proposal.state == "rolled back"
    assert (execution.done, execution.undone) == (done, done)
    assert nodes_of() == before
    assert replayed_table(cluster) == rows.current_table(cluster.pk)


def test_queries_that_end_meanwhile_are_left_out(
    approver: Actor, operator: Actor, cluster: Cluster
) -> None:
    """Queries come and go all day; the other moves still mean what was approved."""
    proposal = begun(approver, cluster)
    gone = moves_of(proposal)[-1]
    queries.end(operator, cluster, [moved_names(proposal)[-1]])
    placement.place_pending(cluster.pk)
    batch(cluster, _step(proposal))
    execution = carried_out(proposal)
    assert proposal.state == "done"
    skipped = [pair for step in execution.steps.all() for pair in step.skipped]
    count = len(proposal.actions)
    assert skipped == [[count - 1, "ended"]]
    progress = progress_of(execution)
    assert (progress.actions, progress.applied, progress.skipped) == (count, count - 1, 1)
    assert gone.query not in nodes_of()


def test_drift_on_the_way_makes_it_stale_and_says_by_how_much(
    approver: Actor, operator: Actor, cluster: Cluster
) -> None:
    """Not a further step; what has moved can be moved back, or asked for anew."""
    proposal = begun(approver, cluster)
    batch(cluster, _step(proposal))
    Node.objects.filter(cluster=cluster, index=0).update(capacity=100)
    progression.advance(proposal.pk)
    proposal.refresh_from_db()
    assert (proposal.state, Step.objects.count()) == ("stale", 1)
    assert proposal.drift["capacities"] == [0]
    assert "the capacity of nodes 0 has changed" in proposal.error
    assert {verb.name for verb in transitions.allowed_verbs(operator, proposal)} == {"roll back"}
    anew = requests.request_again(operator, proposal)
    assert (anew.base, anew.algorithm) == (proposal, proposal.algorithm)


def test_another_execution_waits_for_its_turn(approver: Actor, cluster: Cluster) -> None:
    """At most one per cluster; the second begins by itself when the first has ended."""
    first, second = ready(approver, cluster), ready(approver, cluster)
    # About nothing that the first one moves.
    Proposal.objects.filter(pk=second.pk).update(
        actions=[], before={}, after={}, state="approved", approved_by="x"
    )
    decisions.approve(approver, first, first.seal)
    progression.advance(first.pk)
    progression.advance(second.pk)
    second.refresh_from_db()
    assert second.state == "approved"
    carried_out(first)
    progression.advance(second.pk)
    second.refresh_from_db()
    assert second.state == "done"


def test_others_that_speak_of_the_same_queries_are_superseded(
    approver: Actor, cluster: Cluster
) -> None:
    other = ready(approver, cluster)
    begun(approver, cluster)
    other.refresh_from_db()
    assert other.state == "superseded"


def test_the_same_plan_moves_nothing_twice(approver: Actor, cluster: Cluster) -> None:
    """Servers are numbered by overlap: planning anew what was just carried out moves no query."""
    carried_out(begun(approver, cluster))
    again = requests.request(approver, cluster, "mms", {})
    computation.compute(again.pk)
    again.refresh_from_db()
    assert (again.state, moves_of(again)) == ("no better plan", [])


def test_a_stopped_cluster_is_waited_for(approver: Actor, cluster: Cluster) -> None:
    proposal = ready(approver, cluster)
    decisions.approve(approver, proposal, proposal.seal)
    Cluster.objects.filter(pk=cluster.pk).update(desired="stopped")
    progression.advance(proposal.pk)
    assert _execution(proposal).waits == "the cluster is stopped"
    Cluster.objects.filter(pk=cluster.pk).update(desired="running")
    progression.advance(proposal.pk)
    assert under_way(proposal) is not None
    assert _execution(proposal).waits == ""


def test_a_version_of_somebody_else_is_followed_at_once(
    approver: Actor, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = ready(approver, cluster)
    decisions.approve(approver, proposal, proposal.seal)
    lost = [VersionMoved(2)]

    def publish(*given: Any) -> Step:
        if lost:
            raise lost.pop()
        return steps.publish(*given)

    monkeypatch.setattr(progression, "publish", publish)
    progression.advance(proposal.pk)
    assert under_way(proposal) is not None


def test_a_step_that_cannot_be_published_yet_says_why(
    approver: Actor, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = ready(approver, cluster)
    decisions.approve(approver, proposal, proposal.seal)

    def select(*_: Any) -> Any:
        raise Away("log_away", "x" * 300, 1)

    monkeypatch.setattr(progression, "select", select)
    progression.advance(proposal.pk)
    assert under_way(proposal) is None
    assert len(_execution(proposal).waits) == 200


def test_nothing_is_reverted_before_anything_was_applied(approver: Actor, cluster: Cluster) -> None:
    proposal = ready(approver, cluster)
    decisions.approve(approver, proposal, proposal.seal)
    for begins in (False, True):
        if begins:
            Cluster.objects.filter(pk=cluster.pk).update(desired="stopped")
            progression.advance(proposal.pk)
            assert not _execution(proposal).steps.exists()
            Proposal.objects.filter(pk=proposal.pk).update(state="stopped")
        with pytest.raises(Conflict) as refused:
            control.roll_back(approver, proposal, proposal.seal, "worse")
        assert refused.value.code == "nothing_applied"


def test_a_later_reason_is_shown_to_others_at_once(
    approver: Actor, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = begun(approver, cluster)
    control.pause(approver, proposal)
    shown: list[str] = []
    monkeypatch.setattr(transitions, "announce", lambda _, event, **__: shown.append(event["text"]))
    control.add_reason(approver, proposal, "a call")
    assert shown == [f"Proposal {proposal.pk}: {approver.name} gave a reason for “pause”"]


def test_where_the_policy_says_so_a_person_begins(
    approver: Actor, operator: Actor, cluster: Cluster
) -> None:
    set_policy(cluster, starts=False)
    proposal = ready(approver, cluster)
    decisions.approve(approver, proposal, proposal.seal)
    progression.advance(proposal.pk)
    progression.request_advances()
    proposal.refresh_from_db()
    assert proposal.state == "approved"
    with pytest.raises(Conflict) as refused:
        progression.begin(operator, proposal, "0" * 64)
    assert refused.value.code == "wrong_seal"
    progression.begin(operator, proposal, proposal.seal)
    assert carried_out(proposal).done == len(proposal.actions)
    assert proposal.state == "done"


def _step(proposal: Proposal) -> Step:
    step = under_way(proposal)
    assert step is not None
    return step


def _execution(proposal: Proposal) -> Execution:
    return Execution.objects.get(proposal=proposal)
