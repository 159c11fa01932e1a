"""A step is done when its version has run, its state has arrived and its event time is reached."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.models import (
    Cluster,
    Delivery,
    Execution,
    Proposal,
    RoutingVersion,
    Step,
    Webhook,
)
from controlplane.plans.plan import OtherAction, TaskMove
from controlplane.proposals.executions.acknowledgement import acknowledge, finish_overdue
from controlplane.proposals.executions.steps import rollback_of
from controlplane.wire.routing.action_json import action_to_json
from controlplane.wire.routing.cluster_actions import SetNodeActive
from controlplane.wire.routing.query_actions import MoveTasks
from tests.support.execution import execution_row

pytestmark = pytest.mark.django_db
EVENT_TIME_WAIT = timedelta(minutes=2)
ARRIVAL = {"query": 1, "task": 0, "to": 1, "gap_ms": 500}
MOVE = {"query": 1, "task": 0, "from": 0, "bytes": 1000, "waited": 2}


@pytest.fixture
def step(sf: Cluster) -> Step:
    """Return a published step with one task, in version 5."""
    now = timezone.now()
    execution = execution_row(sf)
    version = RoutingVersion.objects.create(cluster=sf, version=5, created_at=now)
    return Step.objects.create(
        execution=execution, number=1, direction="forward", first=0, stop=1, applied=1, tasks=1,
        version=version, published_at=now, state="published",
    )  # fmt: skip


def row(version: int, **more: Any) -> dict[str, Any]:
    return {"version": version, **more}


def sample(event_ms: int | None) -> Any:
    return {"event_ms": event_ms, "imbalance": 0.3, "p95": 250.0}


def test_only_batches_with_its_version_count(sf: Cluster, step: Step) -> None:
    assert acknowledge(sf, [row(4, arrived_tasks=[ARRIVAL])], [sample(0)]) is False
    step.refresh_from_db()
    assert (step.batches, step.moved, step.state) == (0, 0, "published")
    assert acknowledge(sf, [row(5, moves=[MOVE])], [sample(0)]) is False
    assert acknowledge(sf, [row(6, arrived_tasks=[ARRIVAL])], [sample(0)]) is True
    step.refresh_from_db()
    assert (step.batches, step.moved, step.bytes, step.waited) == (2, 1, 1000, 2)
    assert (step.pause_ms, step.balance_after, step.p95_ms) == (500.0, 0.3, 250.0)
    assert step.state == "done"
    assert step.acknowledged_at is not None
    assert acknowledge(sf, [row(7)], [sample(0)]) is False


def test_state_that_does_not_arrive_is_awaited_for_two_batches(sf: Cluster, step: Step) -> None:
    """A task without state has nothing to export."""
    assert acknowledge(sf, [row(5)], [sample(0)]) is False
    assert acknowledge(sf, [row(5)], []) is True
    step.refresh_from_db()
    assert (step.moved, step.balance_after, step.p95_ms) == (0, None, None)


def test_the_longest_pause_counts(sf: Cluster, step: Step) -> None:
    Step.objects.update(tasks=4)
    gaps = (300, 900, None, 400)
    assert (
        acknowledge(sf, [row(5, arrived_tasks=[{**ARRIVAL, "gap_ms": gap} for gap in gaps])], [])
        is True
    )
    step.refresh_from_db()
    assert (step.moved, step.pause_ms) == (4, 900.0)


@pytest.mark.parametrize(
    ("times", "done"), [([], False), ([None], False), ([999], False), ([1000], True),
                        ([999, 1001, None], True)],
)  # fmt: skip
def test_a_drop_of_windows_waits_for_its_event_time(
    sf: Cluster, step: Step, times: list[int | None], done: bool
) -> None:
    Step.objects.update(tasks=0, effective_at=1000)
    assert acknowledge(sf, [row(5)], [sample(moment) for moment in times]) is done


def test_an_event_time_is_awaited_for_two_minutes(sf: Cluster, step: Step) -> None:
    step.batches, step.tasks, step.effective_at = 0, 0, 1000
    step.published_at -= EVENT_TIME_WAIT
    assert finish_overdue(step) is False, "no batch has run with its version"
    step.published_at += EVENT_TIME_WAIT
    step.batches, step.tasks, step.moved, step.effective_at = 1, 1, 1, None
    assert finish_overdue(step) is False
    assert step.state == "published"
    step.effective_at = 1000
    assert finish_overdue(step) is False
    step.published_at -= EVENT_TIME_WAIT - timedelta(seconds=30)
    assert finish_overdue(step) is False
    step.published_at -= timedelta(seconds=30)
    assert finish_overdue(step) is True
    assert Step.objects.get().state == "done"
    # Another process has finished it since it was read.
    assert finish_overdue(step) is False


def test_the_bytes_of_all_steps_delay_the_next_one(sf: Cluster, step: Step) -> None:
    """50 MB/s by default: 6 GB need two minutes."""
    Step.objects.create(
        execution=step.execution, number=2, direction="forward", first=1, stop=2, state="done",
        published_at=step.published_at, bytes=3 * 10**9,
    )  # fmt: skip
    assert acknowledge(
        sf, [row(5, arrived_tasks=[ARRIVAL], moves=[{**MOVE, "bytes": 3 * 10**9}])], []
    )
    execution = Execution.objects.get()
    assert execution.not_before == execution.started_at + timedelta(seconds=120)
    assert execution.cap == 11


def test_webhooks_receive_each_step_that_is_done(sf: Cluster, step: Step) -> None:
    Webhook.objects.create(
        name="chat", url="https://8.8.8.8/hook", kinds=["executions"], created_by="x",
        created_at=step.published_at,
    )  # fmt: skip
    acknowledge(sf, [row(5)], [])
    assert not Delivery.objects.exists()
    acknowledge(sf, [row(5)], [])
    assert Delivery.objects.count() == 1


def test_several_inverses_of_an_action_revert_it_together(sf: Cluster, step: Step) -> None:
    """None of them alone has the action as its own inverse."""
    move, other = TaskMove(7, 0, 1, 2, 500), SetNodeActive(1, active=True)
    Proposal.objects.update(actions=[move.row(), move.row()])
    step.inverses = [[0, [action_to_json(a) for a in (*move.before, other)]],
                     [1, [action_to_json(a) for a in move.before]]]  # fmt: skip
    step.save()
    back = MoveTasks(7, ((1, 0, 1),))
    assert rollback_of(Execution.objects.get()) == [
        TaskMove(7, 0, 2, 1, 500), OtherAction(back, (), 500), OtherAction(other, (), 500),
    ]  # fmt: skip


def test_a_cluster_without_a_published_step_has_nothing_to_acknowledge(sf: Cluster) -> None:
    assert acknowledge(sf, [row(5)], []) is False
