"""Rows and headline of the list of proposals, and the goals of its form."""

from collections.abc import Mapping
from typing import Any, Final

from django.db.models import Count, Min
from django.urls import reverse
from django.utils import timezone

from algorithms.placement.improve import Goal
from controlplane import numbers
from controlplane.models import Cluster, Proposal
from controlplane.numbers import counted
from controlplane.planning.adapters import all_measures
from controlplane.planning.plan_summary import PlanSummary
from controlplane.plans.proposal_states import State
from controlplane.policies.gains import Gain, gain_in, gain_of
from controlplane.policies.gate import GateCode, Judgement
from controlplane.policies.grades import Grade
from controlplane.policies.settings import PolicySettings
from controlplane.proposals.listing import ENDED_EARLY
from controlplane.proposals.outcome import Outcome, outcome_of
from dashboard.frame.headline import Headline
from dashboard.proposals.headline import pair_text

_ACTIVE: Final = (State.APPROVED, State.EXECUTING, State.PAUSED, State.ROLLING_BACK)
# Title and description of each goal.
GOALS: Final[Mapping[str, tuple[str, str]]] = {
    Goal.REPAIR: ("Repair", "Ends what exceeds a limit; then the least traffic and moves."),
    Goal.TRAFFIC: ("Less traffic", "The fewest copies of records to nodes, within the limits."),
    Goal.EVEN: ("Even load", "The least difference between the fullest node and the mean."),
    Goal.FEW_MOVES: ("Fewest moves", "Ends what exceeds a limit, and moves nothing else."),
}
# Of a plan that improves its measure at the cost of another one.
WORSENS_ANOTHER: Final = "worsens another measure"
_WORDS: Final[Mapping[Grade, str]] = {
    Grade.GOOD: "within limits",
    Grade.WARN: "limit stays exceeded",
    Grade.BAD: "exceeds a limit",
}
# Why a plan is not offered.
_REFUSALS: Final[Mapping[GateCode, str]] = {
    GateCode.EMPTY: "nothing to change",
    GateCode.EXCLUDED: "only exclusions",
    GateCode.NO_GAIN: "no gain",
    GateCode.WORSENS: "worsens its goal",
    GateCode.EXCEEDS: "exceeds another limit",
}


def state_word(proposal: Proposal) -> str:
    """Return the state of a proposal, `ENDED_EARLY` if it became stale while it was executed."""
    is_early = proposal.state == State.STALE and hasattr(proposal, "execution")
    return ENDED_EARLY if is_early else proposal.state


def list_row(proposal: Proposal, policy: PolicySettings) -> dict[str, Any]:
    """Return the row of a proposal; `gain_now`: "" if it does not wait or was not reviewed."""
    outcome = outcome_of(proposal, PlanSummary(), policy) if proposal.after else None
    # The aim of a repair is not a measure.
    (aim,) = proposal.aims if len(proposal.aims) == 1 else ("",)
    aimed = aim if aim in all_measures() else ""
    refusal = Judgement.stored(proposal.judgement)
    # What was computed and is not offered gains nothing.
    is_offered = outcome is not None and refusal is None
    is_waiting = is_offered and proposal.state in (State.READY, State.APPROVED)
    gain = gain_of(proposal, aimed) if is_offered else None
    measure = all_measures().get(gain.measure) if gain is not None else None
    words = _words(outcome) if is_waiting else ""
    return {
        "proposal": proposal,
        "state": state_word(proposal),
        "outcome_words": _REFUSALS[refusal.code] if refusal else words,
        "why": _why(proposal),
        "outcome_grade": str(outcome.grade) if outcome is not None and is_waiting else "",
        "measure": measure.title if measure is not None else "",
        "gain": _text(gain),
        "gain_now": _text(_now(outcome, gain)),
    }


def _why(proposal: Proposal) -> str:
    """Return why a plan failed or is stale, "" for others."""
    exceeded = proposal.drift.get("exceeded") if proposal.state == State.STALE else None
    return "; ".join(exceeded) if exceeded else proposal.error


def _words(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    if outcome.lock is not None:
        return "locked"
    if outcome.grade is Grade.WARN and outcome.gain.share <= 0:
        return "no gain"
    if outcome.grade is Grade.BAD and outcome.gain.share > 0:
        return WORSENS_ANOTHER
    return _WORDS.get(outcome.grade, "")


def _now(outcome: Outcome | None, gain: Gain | None) -> Gain | None:
    """Return the present gain in the measure of the proposed one, None if it is not known."""
    row = outcome.of(gain.measure) if outcome is not None and gain is not None else None
    if outcome is None or not outcome.is_current or row is None:
        return None
    name = row.measure.name
    return gain_in({name: row.now}, {name: row.expected}, name)


def _text(gain: Gain | None) -> str:
    measure = all_measures().get(gain.measure) if gain is not None else None
    if gain is None or measure is None:
        return ""
    return pair_text(measure, gain.before, gain.after)


def list_headline(cluster: Cluster) -> Headline:
    """Return how many proposals wait for approval, and which one is executed."""
    proposals = Proposal.objects.filter(cluster=cluster)
    ready = Proposal.awaiting_approval().filter(cluster=cluster).aggregate(
        count=Count("pk"), others=Count("comparison"), oldest=Min("requested_at"), first=Min("pk"),
    )  # fmt: skip
    active = proposals.filter(state__in=_ACTIVE).only("pk", "state").order_by("pk").first()
    why = f"Proposal {active.pk} is {active.state}." if active is not None else ""
    if ready["count"]:
        waits = numbers.duration(timezone.now() - ready["oldest"])
        others = f", {ready['others']} as alternatives of a comparison" if ready["others"] else ""
        what = f"{counted(ready['count'], 'proposals')} ready for approval{others}"
        what = f"{what}; the oldest waits {waits}"
        link = reverse("proposal", args=[cluster.slug, ready["first"]])
        return Headline(
            what, why, "info", link=link, link_title=f"Review proposal {ready['first']}"
        )
    if active is not None:
        link = reverse("proposal", args=[cluster.slug, active.pk])
        return Headline(why, grade="info", link=link, link_title="Show its execution")
    computing = proposals.filter(state=State.COMPUTING).count()
    if computing:
        return Headline(f"{counted(computing, 'proposals')} computed now", grade="info")
    return Headline("No proposal waits")
