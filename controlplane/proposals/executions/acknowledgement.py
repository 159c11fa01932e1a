"""Acknowledgement of steps by the pipeline's telemetry."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from controlplane.events.publish import announce, event
from controlplane.events.task_names import ADVANCE, send_on_commit
from controlplane.models import Cluster, Execution, Step
from controlplane.policies.store import policy_of
from controlplane.proposals.executions.step_limits import columns, next_cap
from controlplane.telemetry.samples import Sample

# A batch exports the state of a version's moves, and the next batch imports it.
BATCHES: Final = 2
# A stream without records has no progress in event time, so the wait is limited.
EVENT_TIME_WAIT: Final = timedelta(minutes=2)


def acknowledge(
    cluster: Cluster, rows: Sequence[Mapping[str, Any]], samples: Sequence[Sample]
) -> bool:
    """Add telemetry rows to the step in progress; return whether the step is done.

    Runs in the transaction that stores the relay's position, so no row is counted twice.
    """
    step = (
        Step.objects.select_related("version", "execution")
        .filter(execution__cluster=cluster, state=Step.State.PUBLISHED)
        .first()
    )
    if step is None or step.version is None:
        return False
    later = [row for row in rows if row["version"] >= step.version.version]
    if not later:
        return False
    _add(step, later)
    done = _is_done(step, samples, timezone.now())
    if done:
        _finish(step, cluster, samples)
    step.save()
    if done:
        send_on_commit(ADVANCE, step.execution.proposal_id)
    return done


def finish_overdue(step: Step) -> bool:
    """Finish a step that waits too long for an event time; return whether it was finished."""
    cluster = step.execution.cluster
    if step.effective_at is None or not _is_done(step, [], timezone.now()):
        return False
    _finish(step, cluster, [])
    # Concurrent with acknowledgements: one of them finishes the step.
    rows = Step.objects.filter(pk=step.pk, state=Step.State.PUBLISHED)
    return rows.update(state=step.state, acknowledged_at=step.acknowledged_at) == 1


def _is_done(step: Step, samples: Sequence[Sample], now: datetime) -> bool:
    """Return whether all actions of the step are in effect.

    A batch has run with the version, the state of its tasks has arrived, and event time has reached
    the start of its drop rules.
    """
    if not step.batches or (step.moved < step.tasks and step.batches < BATCHES):
        return False
    if step.effective_at is None or now - step.published_at >= EVENT_TIME_WAIT:
        return True
    times = [sample["event_ms"] for sample in samples if sample.get("event_ms") is not None]
    return bool(times) and max(times) >= step.effective_at


def _add(step: Step, rows: Sequence[Mapping[str, Any]]) -> None:
    for row in rows:
        step.batches += 1
        for move in row.get("moves", ()):
            step.bytes += move["bytes"]
            step.waited += move["waited"]
        for arrival in row.get("arrived_tasks", ()):
            step.moved += 1
            if arrival["gap_ms"] is not None:
                step.pause_ms = max(step.pause_ms or 0.0, float(arrival["gap_ms"]))


def _finish(step: Step, cluster: Cluster, samples: Sequence[Sample]) -> None:
    now, policy = timezone.now(), policy_of(cluster)
    step.state, step.acknowledged_at = Step.State.DONE, now
    if samples:
        step.balance_after, step.p95_ms = samples[-1]["imbalance"], samples[-1]["p95"]
    others = step.execution.steps.exclude(pk=step.pk).values_list("bytes", flat=True)
    allowance = next_cap(step.execution, step, policy, sum(others) + step.bytes, now)
    Execution.objects.filter(pk=step.execution_id).update(**columns(allowance))
    message = f"Proposal {step.execution.proposal_id}: step {step.number} done, {allowance.reason}"
    announce(cluster.pk, event("execution", message, pk=step.execution.proposal_id, state="step"))
