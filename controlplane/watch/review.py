"""Review of a ready proposal: rejection, recommendation or automatic approval."""

from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone

from controlplane.access.roles import Automatic
from controlplane.errors import Conflict
from controlplane.models import Cluster, Decision, Proposal
from controlplane.numbers import percent
from controlplane.planning.adapters import adapters
from controlplane.planning.measures import IMBALANCE
from controlplane.policies.auto_approval import PolicyDecision, decide_auto_approval
from controlplane.policies.gains import gain_of, worsened
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.proposals import decisions
from controlplane.proposals.drift import observe_drift
from controlplane.proposals.staleness import mark_stale
from controlplane.watch.codes import is_calm
from controlplane.watch.decision import LoopDecision
from controlplane.watch.decision_log import last_decision, record_decision
from controlplane.watch.loops import all_loops, loop_named
from controlplane.watch.planner_request import WATCH
from controlplane.watch.reading import MOVES, RATIO, SHARE

POLICY: Final = Automatic("policy")
READY: Final = Proposal.State.READY
REVIEWED: Final = ("recommended", "acted", "no_gain", "spoils", "excluded", "drifted")


def review_proposal(proposal_id: int) -> None:
    """Review a computed proposal; do nothing if it is deleted or decided.

    A watch loop's plan that gains too little is rejected, and a plan that the policy approves
    starts; all others wait for a person.
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
    elif proposal.state == READY:
        loop, outcome = _review(proposal, now)
        record_decision(proposal.cluster, loop, outcome, now)


def review_waiting(cluster: Cluster, policy: PolicySettings, now: datetime) -> None:
    """Review the watch loops' waiting proposals again: blackouts end and snapshots become stale."""
    own = Proposal.objects.select_related("cluster").filter(
        cluster=cluster, origin=Proposal.Origin.WATCH, comparison=None, state=READY, decided_by=""
    )
    for proposal in own:
        age = now - proposal.requested_at
        reviewed = Decision.objects.filter(proposal=proposal, code__in=REVIEWED).exists()
        acts = policy.watch == "act"
        if not reviewed or (acts and decide_auto_approval(proposal, policy, now).allowed):
            # The task of its review may be lost.
            review_proposal(proposal.pk)
        elif age >= timedelta(seconds=policy.cooldown_s):
            drift = observe_drift(proposal)
            # It would prevent a new plan.
            if not drift.stale or not mark_stale(proposal, drift, WATCH):
                continue
            text = f"Proposal {proposal.pk} is stale: {drift}"
            record_decision(cluster, loop_of(proposal), _about(proposal, "drifted", text), now)


def _review(proposal: Proposal, now: datetime) -> tuple[str, LoopDecision]:
    """Reject, approve or recommend a proposal; return the loop and the outcome."""
    policy = policy_of(proposal.cluster)
    asker = loop_of(proposal)
    requester = loop_named(asker)
    if requester is not None and requester.confirm is not None and not proposal.actions:
        requester.confirm(proposal)
    faults = {loop: _rejection(proposal, policy, loop) for loop in _affected_loops(proposal, asker)}
    helped = next((loop for loop, fault in faults.items() if fault is None), None)
    fault = faults[asker]
    if helped is None and fault is not None:
        with transaction.atomic():
            decisions.reject(WATCH, proposal, fault.text)
        return asker, fault
    loop = helped or asker
    return loop, _propose(proposal, policy, loop, now)


def _affected_loops(proposal: Proposal, asker: str) -> list[str]:
    """Return the loop that requested the plan, and other loops with an exceeded limit."""
    others = (loop.name for loop in all_loops() if loop.measure and loop.name != asker)
    rows = {name: last_decision(proposal.cluster, name) for name in others}
    return [asker, *(name for name, row in rows.items() if row and not is_calm(row.code))]


def _propose(proposal: Proposal, policy: PolicySettings, loop: str, now: datetime) -> LoopDecision:
    """Approve a plan, or recommend it."""
    gain = gain_of(proposal, _measure_of(loop))
    adapter = adapters().get(proposal.planner)
    # The plans of some planners lower no measure: they are needed.
    about = gain if adapter is None or adapter.improves else adapter.effect
    message = f"Proposal {proposal.pk}: {about}, {len(proposal.actions)} actions"
    decision = decide_auto_approval(proposal, policy, now) if policy.watch == "act" else None
    if decision is None:
        code, note = "recommended", "the watch loops only recommend"
    elif not decision.allowed:
        code, note = "recommended", f"it waits for a person: {decision.text}"
    elif refusal := _approve(proposal, decision):
        code = "drifted" if refusal.code == "stale" else "recommended"
        return _about(proposal, code, f"{message}; {refusal}")
    else:
        code, note = "acted", "approved by the policy"
    text, least = f"{message}; {note}", _least_gain(policy)
    return LoopDecision(code, gain.share, least, text, proposal=proposal.pk)


def _rejection(proposal: Proposal, policy: PolicySettings, loop: str) -> LoopDecision | None:
    """Return the outcome of a rejection, None if the plan is not rejected."""
    left_out = int(proposal.predicted.get("left_out", 0))
    if not proposal.actions:
        if left_out:
            text = f"Exclusions forbid all {left_out} actions of the plan"
            return LoopDecision("excluded", left_out, 0, text, MOVES, proposal.pk)
        text = f"The plan of the {proposal.planner} planner is empty"
        return LoopDecision("no_gain", 0.0, _least_gain(policy), text, proposal=proposal.pk)
    measure = _measure_of(loop)
    if not measure:
        # Tasks must leave a lost node at any cost.
        return None
    gain, least = gain_of(proposal, measure), _least_gain(policy)
    if gain.share < least:
        text = f"The plan gains {percent(gain.share)} ({gain}), {percent(least)} is required"
        return LoopDecision("no_gain", gain.share, least, text, proposal=proposal.pk)
    spoilt = worsened(proposal, policy)
    if spoilt is None:
        return None
    text = f"The plan gains {gain}, but {spoilt}"
    unit = SHARE if spoilt.measure == IMBALANCE.name else RATIO
    return LoopDecision("spoils", spoilt.after, spoilt.limit, text, unit, proposal.pk)


def _measure_of(loop: str) -> str:
    """Return the measure that the plans of a loop must improve, "" for any."""
    known = loop_named(loop)
    return known.measure if known is not None else ""


def _approve(proposal: Proposal, decision: PolicyDecision) -> Conflict | None:
    """Approve a proposal by its seal; return the conflict if it cannot be approved."""
    try:
        decisions.approve(
            POLICY, proposal, proposal.seal, f"Approved automatically: {decision.text}"
        )
    except Conflict as refusal:
        return refusal
    return None


def _least_gain(policy: PolicySettings) -> float:
    """Return the smallest gain of a loop's plan, which is at least the dead band."""
    return max(policy.auto_gain, policy.dead_band)


def loop_of(proposal: Proposal) -> str:
    """Return the loop that requested a proposal."""
    requests = Decision.objects.filter(proposal=proposal).order_by("first_at", "id")
    return requests.values_list("loop", flat=True).first() or "imbalance"


def _about(proposal: Proposal, code: str, text: str) -> LoopDecision:
    return LoopDecision(code, None, None, text, proposal=proposal.pk)
