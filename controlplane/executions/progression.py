"""Advancing an execution: the next step where it is time, or nothing.

Whoever is asked to advance looks at the rows and does what they say comes next. So it does not
matter who is asked, how often, and after which crash.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.errors import VersionMoved
from controlplane.executions.lease import Taken, lease_on, renew
from controlplane.executions.startup import begun
from controlplane.executions.step_limits import step_caps
from controlplane.executions.steps import publish
from controlplane.models import Cluster, Execution, Proposal, Step
from controlplane.planning.execution_plan import backwards, next_step, price
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import caps_of, policy_of
from controlplane.proposals.computation import step_seconds
from controlplane.proposals.drift import Drift, drift_of
from controlplane.proposals.staleness import outdate
from controlplane.proposals.states import APPROVED, State
from controlplane.proposals.transitions import WEIR, move_on, unchanged

logger = logging.getLogger(__name__)

STOPPED = "the cluster is not to run"


def advance(proposal_id: int) -> None:
    """Do what comes next for an approved proposal, as far as it can be done now."""
    proposal = _proposal(proposal_id)
    if proposal is None or proposal.state not in APPROVED:
        return
    execution = begun(proposal)
    if execution is None:
        return
    try:
        with lease_on(execution.pk) as owner:
            while _acted(execution.pk):
                renew(execution.pk, owner)
    except Taken:
        logger.info("%s is advanced by another", execution)


def _proposal(proposal_id: int) -> Proposal | None:
    return Proposal.objects.select_related("cluster").filter(pk=proposal_id).first()


def _acted(execution_id: int) -> bool:
    """Do one thing; tell whether there may be more to do at once."""
    execution = Execution.objects.select_related("proposal", "proposal__cluster").get(
        pk=execution_id
    )
    state = execution.proposal.state
    if execution.steps.filter(state=Step.State.PUBLISHED).exists():
        return False
    if state == State.EXECUTING:
        return _forward(execution)
    return state == State.ROLLING_BACK and _back(execution)


def _forward(execution: Execution) -> bool:
    proposal, policy = execution.proposal, policy_of(execution.proposal.cluster)
    if execution.done >= len(proposal.moves):
        return _end(execution, "finish", "done")
    if execution.last_step and execution.steps.exists():
        return _end(execution, "stopped after step", "stopped after the step")
    if not _is_time(execution):
        return False
    drift = drift_of(proposal, execution.done, policy)
    if drift.stale:
        return _outdated(execution, drift)
    past = _past(execution, proposal.moves, execution.done, policy)
    moves = proposal.moves[execution.done : past]
    return _publish(execution, execution.done, past, moves, {"done": past})


def _outdated(execution: Execution, drift: Drift) -> bool:
    """End it as stale; tell whether to look again, as another process went on meanwhile.

    What that one has moved is elsewhere, which is no drift.
    """
    stands = {"done": execution.done}
    with transaction.atomic():
        if not _moved_on(execution.pk, stands, stands) or not outdate(execution.proposal, drift):
            return True
        _close(execution)
    return False


def _back(execution: Execution) -> bool:
    way = backwards(_made(execution))
    if execution.undone >= len(way):
        return _end(execution, "rolled back", "all is back where it was")
    if not _is_time(execution):
        return False
    policy = policy_of(execution.proposal.cluster)
    past = _past(execution, way, execution.undone, policy)
    moves = way[execution.undone : past]
    return _publish(execution, execution.undone, past, moves, {"undone": past})


def _past(
    execution: Execution, moves: Sequence[Mapping[str, Any]], first: int, policy: PolicySettings
) -> int:
    seconds = step_seconds(execution.proposal.cluster)
    return next_step(moves, first, step_caps(execution.cap, policy), seconds)


def _made(execution: Execution) -> list[Mapping[str, Any]]:
    """Return the moves that were really made forward, in order."""
    steps = execution.steps.filter(direction=Execution.Direction.FORWARD)
    skipped = {at for one in steps.values_list("skipped", flat=True) for at in one}
    moves = execution.proposal.moves[: execution.done]
    return [move for at, move in enumerate(moves) if at not in skipped]


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
    past: int,
    moves: Sequence[Mapping[str, Any]],
    columns_: Mapping[str, int],
) -> bool:
    """Write the step; tell whether it has nothing to wait for."""
    proposal = execution.proposal
    try:
        with transaction.atomic():
            # The place where it stood is the condition: nobody publishes the same moves twice.
            stood = dict.fromkeys(columns_, first)
            if not unchanged(proposal) or not _moved_on(execution.pk, stood, columns_):
                return False
            step = publish(execution, first, past, moves, proposal.approved_by)
            _reprice(execution.pk)
    except (VersionMoved, IntegrityError) as lost:
        logger.info("%s: %s; trying again", execution, lost)
        return True
    return step.state == Step.State.DONE


def _moved_on(pk: int, stood: Mapping[str, int], columns_: Mapping[str, int]) -> bool:
    return Execution.objects.filter(pk=pk, **stood).update(**columns_) == 1


def _reprice(execution_id: int) -> None:
    """Say what going back from here takes."""
    execution = Execution.objects.select_related("proposal__cluster").get(pk=execution_id)
    way = backwards(_made(execution))[execution.undone :]
    cluster = execution.proposal.cluster
    back = price(way, caps_of(policy_of(cluster)), step_seconds(cluster))
    undo = {name: back[name] for name in ("moves", "bytes", "seconds")}
    Execution.objects.filter(pk=execution_id).update(undo=undo)


@transaction.atomic
def _end(execution: Execution, verb: str, told: str) -> bool:
    move_on(WEIR, execution.proposal, verb, told=told)
    _close(execution)
    return False


def _close(execution: Execution) -> None:
    Execution.objects.filter(pk=execution.pk).update(
        finished_at=timezone.now(), waits="", not_before=None, last_step=False
    )
