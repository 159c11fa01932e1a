"""Computation of proposals: snapshot, planner, actions, measures and seal."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from algorithms.errors import PlanningError
from controlplane.errors import Conflict
from controlplane.models import Cluster, Proposal, Snapshot
from controlplane.planning.adapters import adapter_of
from controlplane.planning.computation import compute_plan
from controlplane.planning.resolution import resolve
from controlplane.planning.snapshots import (
    keep_snapshot,
    take_snapshot,
    without_garbage_collection,
)
from controlplane.policies.store import limits_of, policy_of
from controlplane.proposals.transitions import WEIR, move_on, notify
from controlplane.task_names import REVIEW_PROPOSAL, send_on_commit
from controlplane.telemetry.time_series import latest_values

# The interval of progress updates: smooth on the page, cheap for the database.
PROGRESS_EVERY_S = 0.3
# Longer than CELERY_TASK_TIME_LIMIT (ten minutes): afterwards the worker is lost.
LOST_AFTER = timedelta(minutes=11)


class Cancelled(Exception):
    """The computation of the proposal was cancelled."""


def compute(proposal_id: int) -> None:
    """Compute a requested proposal; do nothing if it was deleted or decided."""
    proposal = Proposal.objects.select_related("cluster").filter(pk=proposal_id).first()
    if proposal is None or proposal.state != Proposal.State.COMPUTING:
        return
    try:
        # A large cluster has hundreds of thousands of objects without reference cycles.
        with without_garbage_collection():
            columns = _computed(proposal)
    except Cancelled:
        return
    except (PlanningError, Conflict) as impossible:
        _save(proposal, "fail", error=str(impossible))
    except Exception:
        _save(proposal, "fail", error="The planner failed; see the worker's log")
        raise
    else:
        _save(proposal, "computed", **columns)


def fail_lost(now: datetime) -> int:
    """Mark the proposals of lost workers as failed; return how many."""
    lost = Proposal.objects.select_related("cluster").filter(
        state=Proposal.State.COMPUTING, requested_at__lt=now - LOST_AFTER
    )
    message = "The worker that computed it was lost"
    return sum(_save(proposal, "fail", error=message) for proposal in lost)


def _computed(proposal: Proposal) -> dict[str, Any]:
    row = _snapshot_of(proposal)
    snapshot, started = row.value(), time.monotonic()
    progress, adapter = _progress_of(proposal), adapter_of(proposal.planner)
    algorithm = adapter.algorithm(proposal.algorithm)
    result = adapter.run(algorithm, proposal.parameters, snapshot, progress)
    computed = compute_plan(
        row,
        adapter,
        resolve(snapshot, result.actions),
        limits_of(policy_of(proposal.cluster)),
        step_seconds(proposal.cluster),
        budget=proposal.parameters.get("budget"),
        progress=progress,
    )
    computed.predicted["computed_s"] = round(time.monotonic() - started, 3)
    return computed.columns() | {
        "progress": 1.0,
        "snapshot_row": row,
        "snapshot_version": snapshot.version,
        "bounds": dict(result.bounds),
    }


def _snapshot_of(proposal: Proposal) -> Snapshot:
    """Return the snapshot of the comparison, or a new one for a single proposal."""
    if proposal.comparison is not None and proposal.comparison.snapshot_row is not None:
        return proposal.comparison.snapshot_row
    nu = proposal.parameters.get("nu", proposal.cluster.nu)
    inputs = adapter_of(proposal.planner).inputs
    return keep_snapshot(take_snapshot(proposal.cluster_id, nu, inputs))


def step_seconds(cluster: Cluster) -> float:
    """Return the expected duration of a step in seconds: two recent micro-batches."""
    sample = latest_values(cluster)
    batch_ms = (sample or {}).get("batch_ms") or cluster.trigger_ms
    return 2 * max(batch_ms, cluster.trigger_ms) / 1000


def _progress_of(proposal: Proposal) -> Callable[[float], None]:
    """Return the planner's progress callback, which raises `Cancelled` to stop the planner."""
    reported_at = 0.0

    def report(share: float) -> None:
        nonlocal reported_at
        now = time.monotonic()
        if now - reported_at < PROGRESS_EVERY_S:
            return
        reported_at = now
        computing = Proposal.objects.filter(pk=proposal.pk, state=Proposal.State.COMPUTING)
        if computing.update(progress=share) != 1:
            raise Cancelled
        notify(proposal, f"{share:.0%} computed", passing=True)

    return report


def _save(proposal: Proposal, verb: str, **columns: Any) -> bool:
    """Save the result; return False if the proposal was decided meanwhile."""
    try:
        with transaction.atomic():
            move_on(WEIR, proposal, verb, **columns)
            send_on_commit(REVIEW_PROPOSAL, proposal.pk)
    except Conflict:
        return False
    return True
