"""How far an execution is, and what has become of each move."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.errors import NotFound
from controlplane.models import Cluster, Execution, Proposal, Query, Step
from controlplane.proposals.executions import control, progression
from controlplane.proposals.executions.action_status import (
    ActionStatus,
    Status,
    action_rows,
    counted,
    statuses,
    steps_of,
)
from controlplane.proposals.executions.progress import (
    execution_of,
    progress_of,
    running,
    step_seconds,
    waiting_for,
    waits_of,
)
from controlplane.proposals.listing import ProposalFilters, proposals_listing
from controlplane.topology import placement, queries
from controlplane.topology.applicability import OBSTACLES
from tests.support.execution import (
    begun,
    carried_out,
    execution_row,
    moved_names,
    moves_of,
    ready,
    step_through,
)
from tests.support.heartbeats import send_heartbeats

pytestmark = pytest.mark.django_db(transaction=True)
# The wait after a step that was too much.
RECOVERY_S = 5.0


def states(proposal: Proposal) -> list[ActionStatus]:
    return statuses(proposal, steps_of(proposal))


def test_progress_counts_what_has_arrived_and_not_what_is_under_way(
    approver: Actor, cluster: Cluster
) -> None:
    proposal = begun(approver, cluster)
    first = progress_of(execution_of(proposal))
    assert (first.actions, first.total, first.step) == (0, len(proposal.actions), 1)
    assert (first.applied, first.skipped) == (0, 0)
    step_through(proposal)
    second = progress_of(execution_of(proposal))
    assert (second.actions, second.steps, second.step, second.bytes) == (1, 2, 2, 1000)
    assert second.share == pytest.approx(1 / len(proposal.actions))


def test_actions_that_did_not_apply_at_the_approval_are_not_counted(
    approver: Actor, cluster: Cluster
) -> None:
    """Later ones neither: at the end, every action that could be applied was."""
    proposal = begun(approver, cluster)
    execution = execution_of(proposal)
    assert execution.proposal is proposal, "a large plan is not read again"
    total = len(execution.proposal.actions)
    assert progress_of(execution).applicable == total
    execution.proposal.review |= {"applicable": total - 1}
    progress = progress_of(execution)
    assert progress.applicable == total - 1
    assert replace(progress, skipped=2).applicable == total - 2


def test_the_time_to_go_follows_the_pace_of_the_steps(approver: Actor, cluster: Cluster) -> None:
    """Before the first step has arrived it is what was predicted."""
    proposal = begun(approver, cluster)
    predicted = progress_of(execution_of(proposal)).eta_s
    assert predicted == pytest.approx(proposal.predicted["seconds"], abs=0.2)
    step_through(proposal)
    first = Step.objects.get(number=1)
    Step.objects.filter(pk=first.pk).update(
        acknowledged_at=first.published_at + timedelta(seconds=20)
    )
    left = len(proposal.actions) - 1
    assert progress_of(execution_of(proposal)).eta_s == pytest.approx(20.0 * left)
    until = timezone.now() + timedelta(seconds=100)
    Step.objects.filter(pk=first.pk).update(
        acknowledged_at=first.published_at + timedelta(seconds=1.234)
    )
    assert progress_of(execution_of(proposal)).eta_s == round(1.234 * left, 1)
    Step.objects.filter(pk=first.pk).update(
        acknowledged_at=first.published_at + timedelta(seconds=20)
    )
    Execution.objects.update(not_before=until)
    assert progress_of(execution_of(proposal)).eta_s == pytest.approx(20.0 * left + 100, abs=1)


def test_the_pace_is_that_of_an_action(sf: Cluster) -> None:
    """Six seconds for three actions are two for each of the seven others."""
    row = execution_row(sf)
    Proposal.objects.update(predicted={"actions": 10, "bytes": 0, "seconds": 99.0})
    Step.objects.create(
        execution=row, number=1, direction="forward", first=0, stop=3, applied=2, state="done",
        published_at=row.started_at, acknowledged_at=row.started_at + timedelta(seconds=6),
    )  # fmt: skip
    Execution.objects.update(done=3)
    progress = progress_of(Execution.objects.get())
    assert (progress.actions, progress.applied, progress.skipped) == (3, 2, 1)
    assert (progress.eta_s, progress.eta_least_s, progress.eta_most_s) == (14.0, 6.0, 14.0)
    # One step for the ten that the cap allows; at worst steps of 2 and 1, each with a wait.
    Execution.objects.update(cap=2)
    progress = progress_of(Execution.objects.get())
    assert (progress.eta_least_s, progress.eta_most_s) == (14.0, 6 * (6.0 + RECOVERY_S))
    Execution.objects.update(not_before=timezone.now() - timedelta(seconds=9), cap=10)
    progress = progress_of(Execution.objects.get())
    assert (progress.eta_s, progress.eta_least_s, progress.eta_most_s) == (14.0, 6.0, 14.0)
    Execution.objects.update(not_before=timezone.now() + timedelta(seconds=100))
    progress = progress_of(Execution.objects.get())
    assert progress.eta_least_s == pytest.approx(106.0, abs=1)
    assert progress.eta_most_s == pytest.approx(114.0, abs=1)


def test_an_execution_without_actions_is_whole(sf: Cluster) -> None:
    assert progress_of(execution_row(sf)).share == 1.0


def test_a_step_lasts_until_its_end_or_now(sf: Cluster) -> None:
    begun_at = timezone.now() - timedelta(seconds=60)
    step = Step(published_at=begun_at)
    assert step_seconds(step, begun_at + timedelta(seconds=7)) == 7.0
    assert step_seconds(step) == pytest.approx(60.0, abs=5)
    step.acknowledged_at = begun_at + timedelta(seconds=3)
    assert step_seconds(step, begun_at + timedelta(seconds=7)) == 3.0


def test_a_proposal_waits_for_what_its_execution_waits_for(sf: Cluster) -> None:
    send_heartbeats(redis_client(), [sf])
    proposal = execution_row(sf).proposal
    assert waits_of(proposal) == ""
    Execution.objects.update(waits="the cluster is stopped")
    assert waits_of(proposal) == "the cluster is stopped"
    proposal.state = Proposal.State.DONE
    assert waits_of(proposal) == ""


def test_a_skipped_action_names_its_obstacle() -> None:
    for code, text in OBSTACLES.items():
        assert ActionStatus(Status.SKIPPED, 1, code).obstacle == text
    assert ActionStatus(Status.SKIPPED, 1, "other").obstacle == "other"


def test_what_stands_still_has_no_time_to_go(
    approver: Actor, operator: Actor, cluster: Cluster
) -> None:
    proposal = begun(approver, cluster)
    control.pause(operator, proposal, "a call")
    assert progress_of(execution_of(proposal)).eta_s is None
    assert waiting_for(proposal) == f"{operator.name} paused it"


def test_the_way_back_has_a_progress_of_its_own(
    approver: Actor, operator: Actor, cluster: Cluster
) -> None:
    proposal = begun(approver, cluster)
    step_through(proposal)
    step_through(proposal)
    control.roll_back(operator, proposal, proposal.seal, "worse")
    step_through(proposal)
    found = progress_of(execution_of(proposal))
    assert (found.back, found.actions, found.total, found.step) == (True, 0, 5, 4)
    found.proposal.review |= {"applicable": 1}
    assert found.applicable == 5, "what the plan's review could not apply is not reverted"
    step_through(proposal)
    assert progress_of(execution_of(proposal)).actions == Step.objects.get(number=4).stop > 0
    carried_out(proposal)
    done = progress_of(execution_of(proposal))
    assert (done.actions, done.total, done.eta_s, done.share) == (5, 5, None, 1.0)


def test_moves_tell_what_became_of_them(approver: Actor, operator: Actor, cluster: Cluster) -> None:
    """Waiting, moving, moved, left out, moved back: each with its step."""
    proposal = begun(approver, cluster)
    gone = moved_names(proposal)[-1]
    queries.end(operator, cluster, [gone])
    placement.place_pending(cluster.pk)
    assert [str(fate) for fate in states(proposal)[:2]] == ["applying in step 1", "waiting"]
    carried_out(proposal)
    last = Step.objects.count()
    assert [str(fate) for fate in states(proposal)[:2]] == [
        "applied in step 1",
        "applied in step 2",
    ]
    assert states(proposal)[-1] == ActionStatus(Status.SKIPPED, last, "ended")
    control.roll_back(operator, proposal, proposal.seal, "worse")
    progression.advance(proposal.pk)
    assert str(states(proposal)[-2]) == f"reverting in step {last + 1}"
    carried_out(proposal)
    found = states(proposal)
    assert dict(counted(found)) == {"reverted": len(found) - 1, f"skipped: {found[-1].obstacle}": 1}
    assert str(found[-2]) == f"reverted in step {last + 1}", "the last is the first to go back"


def test_what_has_not_moved_when_it_is_stopped_does_not_move(
    approver: Actor, operator: Actor, cluster: Cluster
) -> None:
    proposal = begun(approver, cluster)
    step_through(proposal)
    control.stop(operator, proposal, "enough")
    found = dict(counted(states(proposal)))
    assert found == {"applied": 1, "applying": 2, "not applied": len(proposal.actions) - 3}


def test_pages_of_actions_name_their_objects(approver: Actor, cluster: Cluster) -> None:
    proposal = ready(approver, cluster)
    row = action_rows(proposal, states(proposal), [len(proposal.actions) - 1])[-1]
    move = moves_of(proposal)[row.place]
    assert (row.text.object, row.text.before, row.text.after) == (
        moved_names(proposal)[row.place], f"node {move.source}", f"node {move.target}",
    )  # fmt: skip
    assert (row.query, row.stream, row.task, row.bytes) == (move.query, None, None, move.bytes)
    assert row.status == ActionStatus(Status.WAITING)
    Query.objects.filter(pk=move.query).update(task_count=2)
    split = action_rows(proposal, states(proposal), [row.place])[0]
    assert (split.query, split.task) == (move.query, move.task)


@pytest.mark.parametrize(
    ("state", "code"), [("ready", "ended"), ("approved", "ended"), ("done", "")]
)
def test_what_the_last_review_could_not_apply_is_marked_while_it_waits(
    sf: Cluster, state: str, code: str
) -> None:
    proposal = Proposal(cluster=sf, state=state, actions=[[1, 0, 0, 1, 0], [2, 0, 0, 1, 0]])
    proposal.obstacles = [[1, "ended"]]
    assert [each.code for each in statuses(proposal, [])] == ["", code]


def test_an_approved_one_says_whom_it_waits_for(approver: Actor, cluster: Cluster) -> None:
    waiting = ready(approver, cluster)
    proposal = begun(approver, cluster)
    Proposal.objects.filter(pk=waiting.pk).update(state="approved", approved_by="x")
    waiting.refresh_from_db()
    send_heartbeats(redis_client(), [cluster])
    assert waiting_for(waiting) == f"proposal {proposal.pk} is being executed"
    with pytest.raises(NotFound):
        execution_of(waiting)


def test_lists_read_no_moves_and_ask_no_row_by_itself(approver: Actor, cluster: Cluster) -> None:
    """A thousand proposals of a thousand moves each must not be read to list fifty."""
    begun(approver, cluster)
    with CaptureQueriesContext(connection) as asked:
        assert list(running()) == [cluster.pk]
    assert len(asked) == 2
    assert all('"actions"' not in one["sql"] for one in asked)
    # Identical requests would be merged.
    same = {"cluster": cluster, "requested_at": timezone.now(), "state": "computing"}
    Proposal.objects.bulk_create(Proposal(**same) for _ in range(5))
    with CaptureQueriesContext(connection) as listed:
        rows = proposals_listing(cluster, ProposalFilters()).page.rows
        assert [row.predicted.get("actions") for row in rows[:5]] == [None] * 5
    assert len(listed) == 2
