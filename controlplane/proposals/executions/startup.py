"""Start of executions: automatically after the approval, or manually."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.access.roles import Actor, require
from controlplane.errors import Conflict
from controlplane.events.task_names import ADVANCE, send_on_commit
from controlplane.models import Execution, Proposal
from controlplane.planning.execution_plan import planned_stops
from controlplane.plans.proposal_states import BY_NAME, State
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import limits_of, policy_of
from controlplane.proposals.computation import step_seconds
from controlplane.proposals.drift import Drift, delays_start, observe_drift
from controlplane.proposals.executions.step_limits import columns, first_cap
from controlplane.proposals.staleness import mark_stale, review_if_due
from controlplane.proposals.transitions import WEIR, move_on, role_for
from controlplane.wire.routing.actions import ActionObject

logger = logging.getLogger(__name__)


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
