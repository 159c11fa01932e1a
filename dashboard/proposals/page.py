"""The context of a proposal's page, from typed values; nothing here reads the actions."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from algorithms.registry import algorithm_title
from controlplane.access.roles import Actor
from controlplane.models import Cluster, Execution, LedgerEntry, Proposal
from controlplane.numbers import percent, raised, size
from controlplane.planning.plan_summary import PlanSummary
from controlplane.plans.proposal_states import ACTIVE
from controlplane.policies.assessment import Assessment
from controlplane.policies.auto_approval import refusals
from controlplane.policies.gate import Judgement
from controlplane.policies.planner_record import record_of
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.proposals.checks import checks_of
from controlplane.proposals.comments import MAX_COMMENTS, comments_of
from controlplane.proposals.counterfactual import MEASURES
from controlplane.proposals.drift import drift_of
from controlplane.proposals.executions import verbs
from controlplane.proposals.executions.progress import Progress, waiting_for
from controlplane.proposals.outcome import Outcome, outcome_of
from controlplane.proposals.review import Review
from dashboard.plan_names import titled_parameters
from dashboard.proposals.check_rows import check_rows
from dashboard.proposals.headline import effect_clauses, headline_of, joined, pause_clause
from dashboard.proposals.measure_rows import LEDGER, proof_rows
from dashboard.proposals.node_rows import load_rows, matrix_of, node_names
from dashboard.proposals.words import obstacle_words
from dashboard.thresholds import STATE_CHIPS

UNDER_WAY: Final = (Proposal.State.COMPUTING, Proposal.State.APPROVED, *ACTIVE)
_WAITS: Final = (Proposal.State.READY, Proposal.State.APPROVED)


def page_context(actor: Actor, cluster: Cluster, proposal: Proposal) -> dict[str, Any]:
    """Return what all parts of the page show."""
    policy = policy_of(cluster)
    execution = Execution.objects.filter(proposal=proposal).first()
    if execution is not None:
        execution.proposal = proposal
    grade, icon = STATE_CHIPS[proposal.state]
    judgement = Judgement.from_json(proposal.judgement)
    better = judgement.better if judgement is not None else None
    return {
        "proposal": proposal,
        "title": algorithm_title(proposal.planner, proposal.algorithm),
        "parameters": _parameters(proposal),
        "chip_grade": grade,
        "chip_icon": icon,
        "under_way": proposal.state in UNDER_WAY,
        "waits": waiting_for(proposal, execution.waits if execution is not None else ""),
        "execution": execution,
        "policy": policy,
        "comments": comments_of(proposal),
        "comments_left": MAX_COMMENTS,
        "better": better if better is not None and not better.is_limit else None,
        **_verbs(actor, proposal),
        **(_plan(cluster, proposal, policy) if proposal.after else {}),
    }


def _parameters(proposal: Proposal) -> list[tuple[str, Any]]:
    """Return the titles and values of the parameters; of a list, as of queries, its length."""
    values = {
        name: len(value) if isinstance(value, list) else value
        for name, value in proposal.parameters.items()
        if name != "budget"
    }
    return titled_parameters(proposal.planner, proposal.algorithm, values)


def _verbs(actor: Actor, proposal: Proposal) -> dict[str, Any]:
    offered = verbs.offered(actor, proposal)
    return {
        "buttons": offered,
        "dialogs": [verb for verb in offered if verb.question],
        "may_request_again": verbs.may_request_again(actor, proposal),
        "may_explain": bool(proposal.unexplained) and actor.may("operator", proposal.cluster_id),
    }


def _plan(cluster: Cluster, proposal: Proposal, policy: PolicySettings) -> dict[str, Any]:
    summary, names = PlanSummary.from_json(proposal.summary), node_names(cluster)
    outcome = outcome_of(proposal, summary, policy)
    waits = proposal.state in _WAITS
    review = Review.from_json(proposal.review) if waits else None
    before, after = (review.before, review.after) if review else (proposal.before, proposal.after)
    loads = load_rows(before, after, cluster, names)
    rows = loads["rows"] if loads else []
    fullest = max(rows, key=lambda row: row["before"])["name"] if rows else ""
    rollback_s = proposal.rollback_cost.get("seconds")
    return {
        "summary": summary,
        "outcome": outcome,
        "plan_headline": headline_of(outcome, rollback_s, fullest),
        "effects": _effects(outcome, fullest),
        "matrix": matrix_of(summary, names),
        "loads": loads,
        "review": _review(review, policy, outcome),
        "drift": _drift(proposal, review),
        "checks": check_rows(checks_of(proposal, outcome, policy)) if waits else [],
        "refusals": refusals(proposal, policy) if proposal.state == Proposal.State.READY else None,
        "record": record_of(cluster, proposal.planner),
        "proof": _proof(proposal),
    }


def _drift(proposal: Proposal, review: Review | None) -> Mapping[str, Any] | None:
    """Return the drift at the last review, and that of an execution while it drifts."""
    if review is not None:
        return review.drift or None
    if proposal.state != Proposal.State.EXECUTING or proposal.drifting_since is None:
        return None
    done = Execution.objects.filter(proposal=proposal).values_list("done", flat=True).first()
    return drift_of(proposal, done or 0).to_json()


def _effects(outcome: Outcome, fullest: str) -> dict[str, str]:
    """Return the effect in words, as the dialog of the approval shows it."""
    clauses = effect_clauses(outcome, fullest)
    pause = pause_clause(outcome)
    moved = f"; {size(outcome.bytes)} of state moves" if outcome.bytes else ""
    return {
        "measures": f"{joined(clauses)}." if clauses else "No measure changes.",
        "pause": f"{raised(pause)}{moved}.",
    }


def _review(
    review: Review | None, policy: PolicySettings, outcome: Outcome
) -> dict[str, Any] | None:
    """Return the strip of what will still happen, None without a review."""
    if review is None:
        return None
    left = None if review.gain_lost is None else 1 - review.gain_lost
    moment = datetime.fromisoformat(review.at)
    # Two reviews are missing: the worker is silent.
    is_old = timezone.now() - moment > timedelta(seconds=30 + 40 * review.took_s)
    return {
        "at": moment,
        "is_old": is_old,
        "applicable": review.applicable,
        "obstacles": [(obstacle_words(code), n) for code, n in review.obstacles.items()],
        "left": None if left is None else percent(left),
        "locks_below": percent(1 - policy.tolerated_gain_loss),
        "actions": outcome.actions,
    }


def _proof(proposal: Proposal) -> dict[str, Any] | None:
    """Return approved, expected, measured and counterfactual values, None before the entry."""
    entry = LedgerEntry.objects.filter(proposal=proposal).first()
    if entry is None:
        return None
    return {
        "entry": entry,
        "assessment": Assessment.from_json(entry.assessment),
        "rows": proof_rows(entry, proposal.before),
        "charts": [
            (name, title)
            for name, (title, *_) in LEDGER.items()
            if name in MEASURES and name in entry.measured
        ],
    }


def counts_text(progress: Progress) -> str:
    """Return the finished actions in words: 141 applied, 48 skipped (query ended)."""
    steps = progress.execution.steps.filter(direction=progress.execution.direction)
    codes = Counter(
        code for skipped in steps.values_list("skipped", flat=True) for _, code in skipped
    )
    text = f"{progress.applied:,} applied"
    if progress.skipped:
        why = ", ".join(obstacle_words(code) for code, _ in codes.most_common())
        text += f", {progress.skipped:,} skipped" + (f" ({why})" if why else "")
    return text
