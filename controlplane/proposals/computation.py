"""Computation of proposals in child processes: snapshot, planner, actions, measures and seal."""

import logging
import time
from datetime import datetime
from typing import Any

from django.db import transaction

from algorithms import optimizers
from algorithms.errors import PlanningError
from controlplane.child_processes.errors import ChildDied, Exhausted, Unwanted
from controlplane.errors import Conflict
from controlplane.events.task_names import REVIEW_PROPOSAL, send_on_commit
from controlplane.models import Cluster, Proposal, Snapshot
from controlplane.numbers import percent
from controlplane.planning.adapter import Progress
from controlplane.planning.adapters import input_readers
from controlplane.planning.computation import Computed, compute_plan
from controlplane.planning.resolution import resolve
from controlplane.planning.snapshots import (
    keep_snapshot,
    take_snapshot,
    without_garbage_collection,
)
from controlplane.planning.sources import source_of
from controlplane.policies.store import limits_of, policy_of
from controlplane.processes.isolation.child import run_in_child
from controlplane.processes.isolation.heartbeat import Heartbeat
from controlplane.processes.isolation.limits import proposal_limits
from controlplane.proposals.claims import (
    MAX_ATTEMPTS,
    claim,
    claim_next,
    give_up_lost,
    owned,
    wake_next,
)
from controlplane.proposals.transitions import WEIR, move_on, notify
from controlplane.telemetry.time_series import latest_values

logger = logging.getLogger(__name__)


def compute(proposal_id: int) -> None:
    """Compute a requested proposal here; do nothing if it is deleted, decided or claimed."""
    claimed = claim(proposal_id)
    if claimed is not None:
        _compute(claimed)


def compute_next() -> None:
    """Compute the proposal that waits longest, if a computing slot is free.

    Afterwards the next one is queued.
    """
    claimed = claim_next()
    if claimed is None:
        return
    try:
        _compute(claimed)
    finally:
        wake_next()


def _compute(proposal: Proposal) -> None:
    try:
        # A large cluster has hundreds of thousands of objects without reference cycles.
        with without_garbage_collection():
            columns = _computed(proposal)
    except Unwanted:
        return
    except Conflict as impossible:
        _fail(proposal, impossible.code, str(impossible))
    except PlanningError as impossible:
        _fail(proposal, "impossible", str(impossible))
    except (Exhausted, ChildDied) as ended:
        logger.warning("%s: %s", proposal, ended)
        _fail(proposal, ended.code, str(ended))
    except Exception:
        _fail(proposal, "broken", "The planner failed; see the worker's log")
        raise
    else:
        _save(proposal, "computed", **columns)


def requeue_lost(now: datetime) -> None:
    """Queue the proposals of lost workers again, or mark them as failed; then start the next."""
    for proposal in give_up_lost(now):
        _fail(proposal, "worker_lost", f"{MAX_ATTEMPTS} workers were lost while they computed it")
    wake_next()


def _computed(proposal: Proposal) -> dict[str, Any]:
    row, started = _snapshot_of(proposal), time.monotonic()
    source = source_of(proposal.planner)
    limits, step_s = limits_of(policy_of(proposal.cluster)), step_seconds(proposal.cluster)

    def plan(progress: Progress) -> tuple[Computed, dict[str, float]]:
        snapshot = row.value()
        result = source.plan_for(proposal.algorithm, proposal.parameters, snapshot, progress)
        actions = resolve(snapshot, result.actions)
        budget = proposal.parameters.get("budget")
        computed = compute_plan(
            row, source, actions, limits, step_s, budget=budget, progress=progress
        )
        if result.curve:
            computed.predicted["curve"] = list(result.curve)
        return computed, dict(result.bounds)

    optimizers.load()
    computed, bounds = run_in_child(plan, proposal_limits(), _heartbeat_of(proposal))
    computed.predicted["computed_s"] = round(time.monotonic() - started, 3)
    return computed.columns() | {
        "progress": 1.0,
        "snapshot_row": row,
        "snapshot_version": row.value().version,
        "bounds": bounds,
    }


def _snapshot_of(proposal: Proposal) -> Snapshot:
    """Return the snapshot of the comparison, or a new one for a single proposal."""
    if proposal.comparison is not None and proposal.comparison.snapshot_row is not None:
        return proposal.comparison.snapshot_row
    nu = proposal.parameters.get("nu", proposal.cluster.nu)
    readers = input_readers({proposal.planner})
    return keep_snapshot(take_snapshot(proposal.cluster_id, nu, readers))


def step_seconds(cluster: Cluster) -> float:
    """Return the expected duration of a step in seconds: two recent micro-batches."""
    sample = latest_values(cluster)
    batch_ms = (sample or {}).get("batch_ms") or cluster.trigger_ms
    return 2 * max(batch_ms, cluster.trigger_ms) / 1000


def _heartbeat_of(proposal: Proposal) -> Heartbeat:
    """Return the heartbeat of a claimed proposal, which publishes the progress, too."""
    return Heartbeat(
        lambda: owned(proposal),
        lambda share: notify(proposal, f"{percent(share)} computed", passing=True),
    )


def _fail(proposal: Proposal, code: str, message: str) -> None:
    _save(proposal, "fail", error_code=code, error=message)


def _save(proposal: Proposal, verb: str, **columns: Any) -> bool:
    """Save the result; return False if the proposal was decided meanwhile."""
    try:
        with transaction.atomic():
            move_on(WEIR, proposal, verb, slot=None, **columns)
            send_on_commit(REVIEW_PROPOSAL, proposal.pk)
    except Conflict:
        return False
    return True
