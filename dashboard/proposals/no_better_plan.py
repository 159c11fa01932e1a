"""The words of a request that found no better plan, from its typed judgement."""

from typing import Final

from django.urls import reverse

from controlplane.models import Proposal
from controlplane.numbers import lowered, percent, raised, value_text
from controlplane.planning.adapters import all_measures
from controlplane.planning.measures import Unit
from controlplane.policies.gate import Change, GateCode, Judgement, NextStep
from dashboard.frame.headline import Headline
from dashboard.proposals.headline import measure_clause

_WHY: Final = {
    GateCode.EMPTY: "The planner found nothing to change",
    GateCode.EXCLUDED: "Exclusions forbid all of its actions",
    GateCode.NO_GAIN: "The plan that was found does not improve its goal",
    GateCode.WORSENS: "The plan that was found worsens its goal",
    GateCode.EXCEEDS: "The plan that was found exceeds a limit",
}
_NEXT: Final = {
    NextStep.NOTHING: "No limit is exceeded: nothing needs to be done.",
    NextStep.CAPACITY: "Add a node, or drop records.",
    NextStep.EXCLUSIONS: "End the exclusions, or wait until they end.",
    NextStep.EXPLAIN: "See what causes the exceeded limit.",
}


def no_better_plan(proposal: Proposal) -> Headline:
    """Return the headline: what was reachable at best, and what would help."""
    judgement = Judgement.from_json(proposal.judgement)
    assert judgement is not None, "the gate has decided the plan"
    reached = "; ".join(filter(None, map(_change_text, judgement.changes)))
    what = f"No better plan. {_WHY[judgement.code]}"
    if judgement.code is GateCode.EMPTY and judgement.next_step is NextStep.NOTHING:
        what = "Nothing needs to move"
    link, title = _link(proposal, judgement)
    why = " ".join([*([f"{raised(reached)}."] if reached else []), _next_text(judgement)])
    grade = "" if judgement.next_step is NextStep.NOTHING else "warn"
    return Headline(what, why, grade, link=link, link_title=title)


def _change_text(change: Change) -> str:
    measure = all_measures().get(change.measure)
    if measure is None or change.before is None or change.after is None:
        return ""
    return measure_clause(measure, change.before, change.after, change.limit)


def _next_text(judgement: Judgement) -> str:
    if judgement.better is not None:
        better = judgement.better
        measure = all_measures()[better.measure]
        reached = value_text(better.after, measure.unit) if better.after is not None else "less"
        name = "limit of the imbalance" if better.is_limit else "limit of uneven load"
        return (
            f"A better plan begins at a {name} of {percent(better.value)}: "
            f"{lowered(measure.title)} {reached}."
        )
    text = _NEXT[judgement.next_step]
    if judgement.missing_capacity is not None:
        missing = value_text(judgement.missing_capacity, Unit.DELIVERIES)
        text = f"The nodes lack a capacity of {missing}. {text}"
    return text


def _link(proposal: Proposal, judgement: Judgement) -> tuple[str, str]:
    """Return where the next useful action is done, and its title."""
    slug = proposal.cluster.slug
    match judgement.next_step:
        case NextStep.EXPLAIN:
            return reverse("cluster", args=[slug]), "Show the cluster"
        case NextStep.CAPACITY:
            return f"{reverse('cluster', args=[slug])}#nodes", "Show the nodes"
        case NextStep.PARAMETER if judgement.better is not None and judgement.better.is_limit:
            return f"{reverse('policy', args=[slug])}#section-watch", "Change the limit"
        case NextStep.EXCLUSIONS:
            return reverse("policy", args=[slug]), "Show the exclusions"
    return "", ""
