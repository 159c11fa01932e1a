"""What the pipeline says of a step: that it runs with it, and what the moves took."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from controlplane.events.publish import announce, event
from controlplane.executions.step_limits import columns, next_cap
from controlplane.models import Cluster, Execution, Step
from controlplane.policies.store import policy_of
from controlplane.task_names import ADVANCE, send_on_commit
from controlplane.telemetry.samples import Sample

# State is handed on in the batch that leads to a version, and put in by the next one.
BATCHES = 2


def acknowledge(
    cluster: Cluster, rows: Sequence[Mapping[str, Any]], samples: Sequence[Sample]
) -> bool:
    """Take telemetry rows for the step under way, within the caller's transaction.

    Tells whether this has finished it. The relay stores rows once, in the transaction that moves
    its position, so that nothing is counted twice.
    """
    step = (
        Step.objects.select_related("version", "execution")
        .filter(execution__cluster=cluster, state=Step.State.PUBLISHED)
        .first()
    )
    if step is None or step.version is None:
        return False
    mine = [row for row in rows if row["version"] >= step.version.version]
    if not mine:
        return False
    _take(step, mine)
    finished = step.moved >= step.tasks or step.batches >= BATCHES
    if finished:
        _finish(step, cluster, samples)
    step.save()
    if finished:
        send_on_commit(ADVANCE, step.execution.proposal_id)
    return finished


def _take(step: Step, rows: Sequence[Mapping[str, Any]]) -> None:
    for row in rows:
        step.batches += 1
        for move in row.get("moves", ()):
            step.bytes += move["bytes"]
            step.waited += move["waited"]
        for came in row.get("came", ()):
            step.moved += 1
            if came["gap_ms"] is not None:
                step.pause_ms = max(step.pause_ms or 0.0, float(came["gap_ms"]))


def _finish(step: Step, cluster: Cluster, samples: Sequence[Sample]) -> None:
    now, policy = timezone.now(), policy_of(cluster)
    step.state, step.acknowledged_at = Step.State.DONE, now
    if samples:
        step.balance_after, step.p95_ms = samples[-1]["imbalance"], samples[-1]["p95"]
    others = step.execution.steps.exclude(pk=step.pk).values_list("bytes", flat=True)
    allowance = next_cap(step.execution, step, policy, sum(others) + step.bytes, now)
    Execution.objects.filter(pk=step.execution_id).update(**columns(allowance))
    told = f"Proposal {step.execution.proposal_id}: step {step.number} done, {allowance.reason}"
    announce(cluster.pk, event("execution", told, pk=step.execution.proposal_id, state="step"))
