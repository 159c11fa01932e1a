"""Computation of proposals in child processes: snapshot, planner, actions, measures and seal."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from django.db import transaction

from algorithms import optimizers
from algorithms.errors import PlanningError
from controlplane.child_processes.errors import ChildDied, Exhausted, Unwanted
from controlplane.child_processes.garbage_collection import without_garbage_collection
from controlplane.errors import Conflict
from controlplane.events.task_names import REVIEW_PROPOSAL, send_on_commit
from controlplane.models import Cluster, Proposal, Snapshot
from controlplane.numbers import percent
from controlplane.planning.adapter import Progress
from controlplane.planning.adapters import adapters, input_readers
from controlplane.planning.computation import Computed, compute_plan
from controlplane.planning.resolution import resolve
from controlplane.planning.snapshots import keep_snapshot, take_snapshot
from controlplane.planning.sources import plan_for
from controlplane.policies.gate import IMBALANCE_LIMIT, BetterParameter, Judgement, PlanGate
from controlplane.policies.measure_limits import cluster_limits
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

# The slacks at which a better plan is searched for if that of a request is none, and for how long.
SLACKS: Final = (0.05, 0.1, 0.2, 0.4, 0.8)
SEARCH_S: Final = 20.0
# A computed plan, and lower bounds by measure.
_Plan = tuple[Computed, dict[str, float]]


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
        _save(proposal, "find nothing better" if columns["judgement"] else "computed", **columns)


def requeue_lost(now: datetime) -> None:
    """Queue the proposals of lost workers again, or mark them as failed; then start the next."""
    for proposal in give_up_lost(now):
        _fail(proposal, "worker_lost", f"{MAX_ATTEMPTS} workers were lost while they computed it")
    wake_next()


def _computed(proposal: Proposal) -> dict[str, Any]:
    row, started = _snapshot_of(proposal), time.monotonic()
    policy, step_s = policy_of(proposal.cluster), step_seconds(proposal.cluster)
    # The child has no database.
    gate = PlanGate.of(proposal, policy)

    def plan(parameters: Mapping[str, Any], progress: Progress) -> _Plan:
        snapshot = row.value()
        result = plan_for(proposal.planner, proposal.algorithm, parameters, snapshot, progress)
        actions, budget = resolve(snapshot, result.actions), parameters.get("budget")
        computed = compute_plan(
            row, proposal.planner, actions, limits_of(policy), step_s, budget=budget,
            progress=progress,
        )  # fmt: skip
        return computed, dict(result.bounds)

    def decided(progress: Progress) -> tuple[_Plan, Judgement | None, Mapping[str, Any]]:
        return _decided(proposal, gate, partial(plan, progress=progress))

    optimizers.load()
    pair, judgement, parameters = run_in_child(decided, proposal_limits(), _heartbeat_of(proposal))
    computed, bounds = pair
    computed.predicted["computed_s"] = round(time.monotonic() - started, 3)
    computed.predicted["limits"] = cluster_limits(proposal.cluster, policy)
    return computed.columns() | {
        "parameters": parameters,
        "judgement": judgement.to_json() if judgement is not None else {},
        "progress": 1.0,
        "snapshot_row": row,
        "snapshot_version": row.value().version,
        "bounds": bounds,
    }


def _decided(
    proposal: Proposal, gate: PlanGate, plan: Callable[[Mapping[str, Any]], _Plan]
) -> tuple[_Plan, Judgement | None, Mapping[str, Any]]:
    """Return a plan, why it is not offered, and its parameters.

    A monitor has chosen the slack of its request, so it takes the one from which a better plan
    begins; people choose it.
    """
    started, parameters = time.monotonic(), proposal.parameters
    pair = plan(parameters)
    judgement = gate.decide(pair[0])
    if judgement is None:
        return pair, None, parameters
    alternative = _better(proposal, gate, plan, time.monotonic() - started)
    if alternative is None:
        return pair, judgement, parameters
    better, better_pair = alternative
    if not better.is_limit and proposal.origin == Proposal.Origin.WATCH:
        return better_pair, None, {**parameters, better.parameter: better.value}
    return pair, judgement.with_better(better), parameters


def _better(
    proposal: Proposal, gate: PlanGate, plan: Callable[[Mapping[str, Any]], _Plan], took_s: float
) -> tuple[BetterParameter, _Plan] | None:
    """Return the least slack from which a plan passes the gate, and it; None if none does in time.

    A slack of the imbalance above the limit of the policy is one of that limit. `took_s`: the
    duration of a plan.
    """
    adapter, started = adapters().get(proposal.planner), time.monotonic()
    slacks = adapter.slacks if adapter is not None else ()
    name = next((slack for slack in slacks if slack in proposal.parameters), "")
    limit, present = gate.limits.get(name), proposal.parameters.get(name)
    if present is None:
        present = limit
    for slack in SLACKS if present is not None else ():
        if slack <= present or time.monotonic() - started + took_s > SEARCH_S:
            continue
        try:
            computed, bounds = plan({**proposal.parameters, name: slack})
        except (Conflict, PlanningError):
            continue
        is_limit = limit is not None and slack > limit
        wider = replace(gate, limits={**gate.limits, name: slack}) if is_limit else gate
        if wider.decide(computed) is None:
            measure = gate.best_gain(computed.before, computed.after).measure
            setting = IMBALANCE_LIMIT if is_limit else name
            after = computed.after.get(measure)
            return BetterParameter(setting, slack, measure, after), (computed, bounds)
    return None


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
