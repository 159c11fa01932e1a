"""Review of a computed proposal: recommendation or automatic approval."""

from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from controlplane.access.roles import Automatic
from controlplane.errors import Conflict
from controlplane.models import Cluster, Decision, Proposal
from controlplane.numbers import lowered
from controlplane.planning.adapters import adapters
from controlplane.planning.measures import REPLICATION_FACTOR
from controlplane.planning.sources import planner_title
from controlplane.policies.auto_approval import PolicyDecision, decide_auto_approval
from controlplane.policies.gains import gain_in, gain_of
from controlplane.policies.gate import GateCode, Judgement, PlanGate
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.proposals import decisions
from controlplane.proposals.drift import observe_drift
from controlplane.proposals.staleness import mark_stale
from controlplane.proposals.transitions import move_on
from controlplane.watch.codes import CODES
from controlplane.watch.decision import LoopDecision
from controlplane.watch.decision_log import last_decision, record_decision
from controlplane.watch.loops import acting_planners, all_loops, loop_named
from controlplane.watch.planner_request import WATCH, watch_proposals
from controlplane.watch.reading import MOVES, RATIO, SHARE

POLICY: Final = Automatic("policy")
READY: Final = Proposal.State.READY
NO_BETTER_PLAN: Final = Proposal.State.NO_BETTER_PLAN
REVIEWED: Final = ("recommended", "acted", "no_gain", "spoils", "excluded", "drifted")


def review_proposal(proposal_id: int) -> None:
    """Review a computed proposal; do nothing if it is deleted or decided.

    A plan that the policy approves starts; all others wait for a person. A watch loop records why
    its plan is none.
    """
    proposal = Proposal.objects.select_related("cluster").filter(pk=proposal_id).first()
    if proposal is None or proposal.decided_by:
        return
    now = timezone.now()
    if proposal.origin != Proposal.Origin.WATCH or proposal.comparison_id is not None:
        decision = decide_auto_approval(proposal, moment=now)
        if decision.allowed:
            _approve(proposal, decision)
        return
    if proposal.state == Proposal.State.FAILED:
        failed = _about(proposal, "failed", proposal.error)
        record_decision(proposal.cluster, loop_of(proposal), failed, now)
    elif proposal.state in (READY, NO_BETTER_PLAN):
        loop, outcome = _review(proposal, now)
        record_decision(proposal.cluster, loop, outcome, now)


def review_waiting(cluster: Cluster, policy: PolicySettings, now: datetime) -> None:
    """Review the watch loops' waiting proposals again: blackouts end and snapshots become stale."""
    last = watch_proposals(cluster).first()
    if last is not None and last.state == NO_BETTER_PLAN and not _is_reviewed(last):
        review_proposal(last.pk)
    for proposal in _waiting(cluster):
        age = now - proposal.requested_at
        acts = policy.watch == "act"
        if not _is_reviewed(proposal) or (
            acts and decide_auto_approval(proposal, policy, now).allowed
        ):
            # The task of its review may be lost.
            review_proposal(proposal.pk)
        elif age >= timedelta(seconds=policy.cooldown_s):
            # It would prevent a new plan.
            why = _staleness(proposal, policy, now)
            if why:
                text = f"Proposal {proposal.pk} is stale: {why}"
                record_decision(cluster, loop_of(proposal), _about(proposal, "drifted", text), now)


def _staleness(proposal: Proposal, policy: PolicySettings, now: datetime) -> str:
    """Mark a waiting plan as stale if it is; return why, "" if it is not."""
    drift = observe_drift(proposal)
    if drift.stale:
        return str(drift) if mark_stale(proposal, drift, WATCH) else ""
    last = last_decision(proposal.cluster, loop_of(proposal))
    if last is None or CODES[last.code].grade != "good":
        return ""
    calm = now - last.first_at
    why = f"what it is to end has been within its limit for {calm.total_seconds() / 60:.0f} min"
    is_over = calm >= timedelta(seconds=policy.drift_hold_s)
    return why if is_over and mark_stale(proposal, drift, WATCH, why) else ""


def proposals_beside(cluster: Cluster, planner: str) -> QuerySet[Proposal]:
    """Return the loops' proposals that a plan of a planner waits for, the newest first."""
    proposals, acting = watch_proposals(cluster), acting_planners()
    if planner in acting:
        return proposals.filter(planner=planner)
    return proposals.exclude(planner__in=acting)


def _waiting(cluster: Cluster) -> QuerySet[Proposal]:
    """Return the ready plans of the loops that wait for a decision."""
    return watch_proposals(cluster).select_related("cluster").filter(state=READY, decided_by="")


def _is_reviewed(proposal: Proposal) -> bool:
    return Decision.objects.filter(proposal=proposal, code__in=REVIEWED).exists()


def _review(proposal: Proposal, now: datetime) -> tuple[str, LoopDecision]:
    """Approve or recommend a proposal; return the loop that it helps and the outcome."""
    policy, loop = policy_of(proposal.cluster), loop_of(proposal)
    gate = PlanGate.of(proposal, policy)
    if proposal.state != NO_BETTER_PLAN:
        _replace_older(proposal)
        loop = _helped(proposal, loop, gate)
        return loop, _propose(proposal, policy, loop, gate.least, now)
    requester = loop_named(loop)
    if requester is not None and requester.confirm is not None:
        requester.confirm(proposal)
    judgement = Judgement.stored(proposal.judgement)
    assert judgement is not None, "the gate has decided the plan"
    return loop, _refused(proposal, judgement, gate.least)


@transaction.atomic
def _replace_older(proposal: Proposal) -> None:
    """Supersede the waiting plans that the loops requested before this one."""
    beside = proposals_beside(proposal.cluster, proposal.planner)
    for older in _waiting(proposal.cluster).filter(pk__in=beside, pk__lt=proposal.pk):
        move_on(WATCH, older, "supersede", message=f"replaced by proposal {proposal.pk}")


def _helped(proposal: Proposal, asker: str, gate: PlanGate) -> str:
    """Return the loop that asked, another one if the plan helps only that."""
    known, before, after = loop_named(asker), proposal.before, proposal.after
    if known is None or not known.measure:
        return asker
    if gain_in(before, after, known.measure).share >= gate.least:
        return asker
    best = gate.best_gain(before, after).measure
    return next((loop.name for loop in all_loops() if loop.measure == best), asker)


def _propose(
    proposal: Proposal, policy: PolicySettings, loop: str, least: float, now: datetime
) -> LoopDecision:
    """Approve a plan, or recommend it."""
    known = loop_named(loop)
    gain = gain_of(proposal, known.measure if known is not None else "")
    adapter = adapters().get(proposal.planner)
    # The plans of some planners lower no measure: they are needed.
    about = gain if adapter is None or adapter.improves else adapter.effect
    message = f"Proposal {proposal.pk}: {about}, {len(proposal.actions)} actions"
    decision = decide_auto_approval(proposal, policy, now) if policy.watch == "act" else None
    if decision is None:
        code, note = "recommended", "the monitors only recommend"
    elif not decision.allowed:
        code, note = "recommended", f"it waits for a person: {decision.text}"
    elif refusal := _approve(proposal, decision):
        code = "drifted" if refusal.code == "stale" else "recommended"
        return _about(proposal, code, f"{message}; {refusal}")
    else:
        code, note = "acted", "approved by the policy"
    text = f"{message}; {note}"
    return LoopDecision(code, gain.share, least, text, proposal=proposal.pk)


def _refused(proposal: Proposal, judgement: Judgement, least: float) -> LoopDecision:
    """Return the outcome of a plan that is not better than the cluster as it is."""
    if judgement.code is GateCode.EXCLUDED:
        left_out = judgement.left_out
        text = f"Exclusions forbid all {left_out} actions of the plan"
        return LoopDecision("excluded", left_out, 0, text, MOVES, proposal.pk)
    if not proposal.actions:
        text = f"The plan to {lowered(planner_title(proposal.planner))} has no actions"
        return LoopDecision("no_gain", 0.0, least, text, proposal=proposal.pk)
    decisive = judgement.changes[0]
    gain = gain_in(proposal.before, proposal.after, decisive.measure)
    text = f"No better plan: {gain}"
    if judgement.code is not GateCode.EXCEEDS:
        return LoopDecision("no_gain", gain.share, least, text, proposal=proposal.pk)
    unit = RATIO if decisive.measure == REPLICATION_FACTOR.name else SHARE
    return LoopDecision("spoils", decisive.after, decisive.limit, text, unit, proposal.pk)


def _approve(proposal: Proposal, decision: PolicyDecision) -> Conflict | None:
    """Approve a proposal by its seal; return the conflict if it cannot be approved."""
    try:
        decisions.approve(
            POLICY, proposal, proposal.seal, f"Approved automatically: {decision.text}"
        )
    except Conflict as refusal:
        return refusal
    return None


def loop_of(proposal: Proposal) -> str:
    """Return the loop that requested a proposal."""
    requests = Decision.objects.filter(proposal=proposal).order_by("first_at", "id")
    return requests.values_list("loop", flat=True).first() or "imbalance"


def _about(proposal: Proposal, code: str, text: str) -> LoopDecision:
    return LoopDecision(code, None, None, text, proposal=proposal.pk)
