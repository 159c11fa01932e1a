"""Progression of executions: start, and publication of due steps, by one process at a time.

The rows alone determine the next operation, so any process can advance an execution, any number of
times, and after a crash. An execution starts automatically after the approval, or manually.
"""

import logging
import os
import socket
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from controlplane.access.roles import Actor, require
from controlplane.errors import Away, Conflict, VersionMoved
from controlplane.events.task_names import ADVANCE, send_on_commit
from controlplane.models import Cluster, Execution, Proposal, Step
from controlplane.planning.execution_plan import estimate_cost, next_step, planned_stops
from controlplane.plans.plan import PlannedAction
from controlplane.plans.proposal_states import APPROVED, BY_NAME, State
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import limits_of, policy_of
from controlplane.proposals.computation import step_seconds
from controlplane.proposals.drift import Drift, delays_start, observe_drift
from controlplane.proposals.executions.acknowledgement import finish_overdue
from controlplane.proposals.executions.step_limits import columns, first_cap, step_limits
from controlplane.proposals.executions.steps import publish, rollback_of, select
from controlplane.proposals.review import still_helps
from controlplane.proposals.staleness import TIMES, mark_stale, review_if_due
from controlplane.proposals.transitions import WEIR, move_on, role_for, unchanged
from controlplane.topology.apply import ActionRejected
from controlplane.wire.routing.actions import ActionObject

logger = logging.getLogger(__name__)

STOPPED = "the cluster is stopped"
# The interval of the beat's task, within which a queued progression starts.
EVERY_S = 2.0
# Longer than any step takes; after a process was killed, another one continues when it expires.
LEASE: Final = timedelta(seconds=15)


def advance(proposal_id: int) -> None:
    """Execute the due operations of an approved proposal."""
    proposal = Proposal.objects.select_related("cluster").filter(pk=proposal_id).first()
    if proposal is None or proposal.state not in APPROVED:
        return
    execution = get_or_start(proposal)
    if execution is None:
        return
    try:
        with lease_on(execution.pk) as owner:
            while _acted(execution.pk):
                renew(execution.pk, owner)
    except Taken:
        logger.info("another process advances %s", execution)


def _acted(execution_id: int) -> bool:
    """Execute one operation; return whether another one may be due."""
    execution = Execution.objects.select_related("proposal", "proposal__cluster").get(
        pk=execution_id
    )
    state = execution.proposal.state
    present = execution.steps.filter(state=Step.State.PUBLISHED).first()
    if present is not None:
        return finish_overdue(present)
    if state == State.EXECUTING:
        return _forward(execution)
    return state == State.ROLLING_BACK and _back(execution)


def _forward(execution: Execution) -> bool:
    proposal, policy = execution.proposal, policy_of(execution.proposal.cluster)
    if execution.done >= len(proposal.actions):
        return _end(execution, "finish", "done")
    if execution.last_step and execution.steps.exists():
        return _end(execution, "stopped after step", "stopped after the step")
    if not _is_time(execution):
        return False
    drift = observe_drift(proposal, execution.done, policy)
    if drift.changed:
        return _end_as_stale(execution, drift)
    # The start has compared what the plan would do now.
    if drift.exceeded and execution.done and not _still_helps(execution, drift, policy):
        is_over = drift.stale or drift.lasted_s >= policy.alert_hold_s
        return is_over and _end_as_stale(execution, drift)
    stop = _stop(execution, proposal.plan[execution.done :], execution.done, policy)
    actions = proposal.plan[execution.done : stop]
    return _publish(execution, execution.done, stop, actions, {"done": stop})


def _still_helps(execution: Execution, drift: Drift, policy: PolicySettings) -> bool:
    """Return whether the rest of the plan helps as loads are now; store why it waits if not."""
    helps, took_s = still_helps(execution.proposal, execution.done, policy)
    if not helps:
        waits = f"drifting since {execution.proposal.drifting_since:%H:%M:%S} UTC: {drift}"
        pause = timedelta(seconds=TIMES * took_s)
        Execution.objects.filter(pk=execution.pk).update(
            waits=waits[:200], not_before=timezone.now() + pause
        )
    return helps


def _end_as_stale(execution: Execution, drift: Drift) -> bool:
    """End the execution as stale unless another process has advanced it; return False."""
    present = {"done": execution.done}
    with transaction.atomic():
        if _moved_on(execution.pk, present, present) and mark_stale(execution.proposal, drift):
            _close(execution)
    return False


def _back(execution: Execution) -> bool:
    rollback = rollback_of(execution)
    if execution.undone >= len(rollback):
        return _end(execution, "rolled back", "rolled back")
    if not _is_time(execution):
        return False
    policy = policy_of(execution.proposal.cluster)
    stop = _stop(execution, rollback[execution.undone :], execution.undone, policy)
    actions = rollback[execution.undone : stop]
    return _publish(execution, execution.undone, stop, actions, {"undone": stop})


def _stop(
    execution: Execution, plan: Sequence[PlannedAction], first: int, policy: PolicySettings
) -> int:
    """Return the stop of the step that starts with the first of these actions, at `first`."""
    seconds = step_seconds(execution.proposal.cluster)
    return first + next_step(plan, step_limits(execution.cap, policy), seconds)


def _is_time(execution: Execution) -> bool:
    if execution.proposal.cluster.desired != Cluster.Desired.RUNNING:
        Execution.objects.filter(pk=execution.pk).update(waits=STOPPED)
        return False
    if execution.not_before is not None and execution.not_before > timezone.now():
        return False
    if execution.waits:
        Execution.objects.filter(pk=execution.pk).update(waits="", not_before=None)
    return True


def _publish(
    execution: Execution,
    first: int,
    stop: int,
    plan: Sequence[PlannedAction],
    progress: Mapping[str, int],
) -> bool:
    """Publish a step; return whether it is done already."""
    proposal = execution.proposal
    try:
        chosen = select(Cluster.objects.get(pk=execution.cluster_id), plan, first)
        with transaction.atomic():
            # Conditional on the present progress, so that no action is published twice.
            present = dict.fromkeys(progress, first)
            if not unchanged(proposal) or not _moved_on(execution.pk, present, progress):
                return False
            step = publish(execution, first, stop, chosen, proposal.approved_by)
            _estimate_rollback(execution, progress.get("undone", execution.undone))
    except (VersionMoved, IntegrityError) as lost:
        logger.info("%s: %s; trying again", execution, lost)
        return True
    except ActionRejected as refusal:
        return _end(execution, "fail", f"failed: {refusal}", error=str(refusal))
    except Away as away:
        Execution.objects.filter(pk=execution.pk).update(waits=str(away)[:200])
        return False
    return step.state == Step.State.DONE


def _moved_on(pk: int, present: Mapping[str, int], progress: Mapping[str, int]) -> bool:
    return Execution.objects.filter(pk=pk, **present).update(**progress) == 1


def _estimate_rollback(execution: Execution, undone: int) -> None:
    """Store the predicted cost of a rollback without its first `undone` actions."""
    rollback, cluster = rollback_of(execution)[undone:], execution.proposal.cluster
    cost = estimate_cost(rollback, limits_of(policy_of(cluster)), step_seconds(cluster))
    Execution.objects.filter(pk=execution.pk).update(rollback_cost=cost.to_json())


@transaction.atomic
def _end(execution: Execution, verb: str, message: str, **columns: str) -> bool:
    move_on(WEIR, execution.proposal, verb, message=message, **columns)
    _close(execution)
    return False


def _close(execution: Execution) -> None:
    Execution.objects.filter(pk=execution.pk).update(
        finished_at=timezone.now(), waits="", not_before=None, last_step=False
    )


def request_advances() -> int:
    """Queue the progression of every proposal that may have a due operation; return how many."""
    open_ = Proposal.objects.select_related("cluster").filter(
        state__in=(State.APPROVED, State.EXECUTING, State.ROLLING_BACK)
    )
    queued = 0
    for proposal in open_.defer(*Proposal.HEAVY).order_by("approved_at"):
        if proposal.state == State.APPROVED and not policy_of(proposal.cluster).starts:
            continue
        send_on_commit(ADVANCE, proposal.pk, expires_s=EVERY_S)
        queued += 1
    return queued


class Taken(Exception):
    """Another process holds the lease."""


@contextmanager
def lease_on(execution_id: int) -> Iterator[str]:
    """Hold the lease during the block; raises `Taken` if another process holds it.

    The lease avoids duplicate work. Exactly-once steps do not depend on it: each step is a
    transaction that is conditional on the previous step.
    """
    owner = f"{socket.gethostname()[:40]}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    rows, now = Execution.objects.filter(pk=execution_id), timezone.now()
    free = rows.filter(Q(lease_owner="") | Q(lease_until=None) | Q(lease_until__lt=now))
    if free.update(lease_owner=owner, lease_until=now + LEASE) != 1:
        raise Taken
    try:
        yield owner
    finally:
        rows.filter(lease_owner=owner).update(lease_owner="", lease_until=None)


def renew(execution_id: int, owner: str) -> None:
    """Extend the lease. Raises `Taken` if it was lost."""
    own = Execution.objects.filter(pk=execution_id, lease_owner=owner)
    if own.update(lease_until=timezone.now() + LEASE) != 1:
        raise Taken


def begin(actor: Actor, proposal: Proposal, seal: str) -> Proposal:
    """Start an approved proposal that the policy does not start automatically.

    While it drifts, but is not stale, its first step waits.

    Raises `Forbidden`, and `Conflict`: not_allowed, wrong_seal, stale (data: the drift), or
    another_executing.
    """
    # Checked first, as the drift below changes the proposal.
    require(actor, role_for(BY_NAME["begin"], proposal), proposal.cluster)
    policy = policy_of(proposal.cluster)
    drift = _drift(proposal, policy)
    if drift is not None and drift.stale:
        raise Conflict("stale", f"Stale: {drift}. Request it again", drift.to_json())
    with translate_integrity_error(), transaction.atomic():
        move_on(actor, proposal, "begin", named=seal)
        _execution(proposal, policy)
        send_on_commit(ADVANCE, proposal.pk)
    return proposal


@contextmanager
def translate_integrity_error() -> Iterator[None]:
    """Translate the constraint on a second execution of a cluster into `Conflict`."""
    try:
        yield
    except IntegrityError:
        message = "Another proposal of the cluster is being executed"
        raise Conflict("another_executing", message) from None


def get_or_start(proposal: Proposal) -> Execution | None:
    """Return the execution, started if necessary; None during another one of the cluster."""
    if proposal.state != State.APPROVED:
        return Execution.objects.get(proposal=proposal)
    policy = policy_of(proposal.cluster)
    if not policy.starts or _drift(proposal, policy) is not None:
        return None
    try:
        with transaction.atomic():
            move_on(WEIR, proposal, "start", message="starts")
            return _execution(proposal, policy)
    except IntegrityError:
        logger.info("%s waits for the other execution of its cluster", proposal)
    except Conflict as lost:
        logger.info("%s was started or withdrawn by another process: %s", proposal, lost)
    return None


def _drift(proposal: Proposal, policy: PolicySettings) -> Drift | None:
    """Mark a stale proposal; return the drift that delays or forbids the start, None without."""
    if proposal.state != State.APPROVED:
        return None
    review_if_due(proposal)
    drift = observe_drift(proposal, policy=policy)
    if drift.stale:
        return drift if mark_stale(proposal, drift) else None
    return drift if delays_start(drift, policy) else None


def _execution(proposal: Proposal, policy: PolicySettings) -> Execution:
    _supersede(proposal)
    step_s = step_seconds(proposal.cluster)
    return Execution.objects.create(
        proposal=proposal,
        cluster=proposal.cluster,
        started_at=timezone.now(),
        planned_stops=planned_stops(proposal.plan, limits_of(policy), step_s),
        planned_step_s=step_s,
        **columns(first_cap(policy)),
    )


def _supersede(started: Proposal) -> None:
    """Supersede other proposals that change the same objects."""
    changed = _subjects(started)
    others = Proposal.objects.select_related("cluster").filter(
        cluster=started.cluster_id, state__in=(State.READY, State.APPROVED)
    )
    for other in others:
        if not changed.isdisjoint(_subjects(other)):
            move_on(WEIR, other, "supersede", message=f"superseded by proposal {started.pk}")


def _subjects(proposal: Proposal) -> set[ActionObject]:
    return {subject for planned in proposal.plan for subject in planned.action.subjects()}
