"""The headline of a proposal's page, by the state of the proposal."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.urls import reverse
from django.utils.http import urlencode

from controlplane.alerts.measures import KINDS
from controlplane.explain import subject_of_measure
from controlplane.models import LedgerEntry, Proposal
from controlplane.numbers import lowered, percent, raised, value_text
from controlplane.planning.adapters import all_measures
from controlplane.planning.measures import Unit
from controlplane.policies.assessment import LATENCY, NOISE, Assessment, EffectKind, MeasureEffect
from controlplane.policies.gate import Change, GateCode, Judgement, NextStep
from controlplane.policies.planner_record import error_of
from dashboard.frame.headline import Headline
from dashboard.proposals.headline import arrow, measure_clause
from dashboard.proposals.measure_rows import LEDGER

_Known = Mapping[str, Any]
_WAITS: Final = (Proposal.State.READY, Proposal.State.APPROVED)
_SKIPPED: Final = "The remaining actions were not applied."
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


def page_headline(proposal: Proposal, known: _Known) -> Headline:
    """Return the headline: of the computation, the open execution, the proof or the plan.

    `known`: the context of the page: `waits`, why it waits, "" if it does not; and if they are
    known `plan_headline`, `running_headline` of an open execution, `proof`, the measured effect,
    and `counts`, the finished actions in words.
    """
    if proposal.state == Proposal.State.COMPUTING:
        what = f"The planner computes the plan: {round(100 * proposal.progress)} % done"
        return Headline(what, _waits(known), "info", icon="clock")
    plan: Headline | None = known.get("plan_headline")
    if plan is None:
        return _without_plan(proposal)
    running: Headline | None = known.get("running_headline")
    if running is not None:
        return running
    counts, proof = known.get("counts", ""), known.get("proof")
    if proof is not None:
        return _proof(proposal, counts, proof)
    return _by_state(proposal, counts, plan, _waits(known))


def _without_plan(proposal: Proposal) -> Headline:
    if proposal.state == Proposal.State.FAILED:
        return Headline("The computation failed", proposal.error, "bad")
    return Headline("There is no plan", "It was cancelled before the planner finished.")


def _proof(proposal: Proposal, counts: str, proof: Mapping[str, Any]) -> Headline:
    """Return the assessment over all measures; of a rollback, what holds after it."""
    assessment, samples = proof["assessment"], proof["entry"].samples
    measured = f"measured over {samples} batches{_approved(proof)}" if samples else "not measured"
    why = [f"{counts}; {measured}."]
    if proposal.state == Proposal.State.STALE:
        why.append(f"It became stale: {proposal.error}. {_SKIPPED}")
    costs = "" if not assessment.effects else _exceeded_costs(proof["entry"])
    what, grade, icon = f"{assessment_text(assessment)}{costs}", str(assessment.grade), ""
    if proposal.state == Proposal.State.ROLLED_BACK:
        what, grade, icon = f"{_rolled_back(proposal)}: {rollback_text(assessment)}", "", "undo"
    elif not assessment.effects:
        what, grade = "The execution finished; its effect was not measured", ""
    return Headline(what, " ".join(why), grade, icon=icon)


def _exceeded_costs(entry: LedgerEntry) -> str:
    """Return the costs that were clearly above what was approved, "" for none."""
    texts = []
    for name in ("bytes", "pause_ms"):
        (title, _, write), approved = LEDGER[name], entry.approved.get(name)
        measured = entry.measured.get(name)
        if approved is None or measured is None or measured <= approved:
            continue
        more = error_of(name, approved, measured)
        if more > NOISE:
            change = arrow(write(approved), write(measured))
            texts.append(f"; {lowered(title)} {change}, {percent(more)} more than approved")
    return "".join(texts)


def _approved(proof: Mapping[str, Any]) -> str:
    """Return what was approved of the measures that changed, "" if nothing is known of them."""
    texts = [
        f"{lowered(LEDGER[row.measure][0])} {LEDGER[row.measure][2](value)}"
        for row in proof["assessment"].effects
        if row.effect is not EffectKind.UNCHANGED and row.measure != LATENCY
        if (value := proof["entry"].approved.get(row.measure)) is not None
    ]
    return f"; the approved plan had {', '.join(texts)}" if texts else ""


def _rolled_back(proposal: Proposal) -> str:
    return f"Rolled back by {proposal.decided_by}"


def _by_state(proposal: Proposal, counts: str, plan: Headline, waits: str) -> Headline:
    match proposal.state:
        case Proposal.State.STALE:
            return _stale(proposal, is_executed=bool(counts))
        case Proposal.State.FAILED:
            return Headline(f"Failed: {proposal.error}", counts, "bad")
        case Proposal.State.SUPERSEDED:
            return Headline("Superseded: another proposal was chosen, or changed the same objects")
        case Proposal.State.NO_BETTER_PLAN:
            return no_better_plan(proposal)
    return _by_plan(proposal, counts, plan, waits)


def _by_plan(proposal: Proposal, counts: str, plan: Headline, waits: str) -> Headline:
    if counts:
        follow = "The measurements follow thirty batches after the end."
        if proposal.state == Proposal.State.ROLLED_BACK:
            return Headline(_rolled_back(proposal), f"{counts}. {follow}", icon="undo")
        return Headline(f"Executed: {counts}", follow)
    if proposal.state not in _WAITS:
        return Headline(plan.what, plan.why)
    why = plan.why
    if proposal.state == Proposal.State.APPROVED:
        why = f"{why} {waits or 'Starts when a worker is free.'}".lstrip()
    return Headline(plan.what, why, plan.grade)


def _stale(proposal: Proposal, *, is_executed: bool) -> Headline:
    """Return what drifted too far, and what remains to be done."""
    clauses = proposal.drift.get("exceeded") or [proposal.error or "the cluster has changed"]
    texts = ". ".join(raised(clause).rstrip(".") for clause in clauses)
    if is_executed:
        return Headline(f"Stale. {texts}", _SKIPPED, "bad")
    why = "The cluster has changed since the plan was computed: recompute it."
    return Headline(f"Stale. {texts}", why, "bad")


def _waits(known: _Known) -> str:
    return f"Waits because {known['waits']}." if known["waits"] else ""


def assessment_text(assessment: Assessment) -> str:
    """Return what a plan helped and what it harmed."""
    helped, harmed = (
        assessment.with_effect(EffectKind.HELPED),
        assessment.with_effect(EffectKind.HARMED),
    )
    if not helped and not harmed:
        return "Changed no measure beyond its noise"
    clauses = [f"helped {_joined(helped)}"] if helped else ["helped nothing"]
    clauses.append(f"harmed {_joined(harmed)}" if harmed else "harmed nothing")
    return raised("; ".join(clauses))


def rollback_text(assessment: Assessment) -> str:
    """Return what holds after a rollback."""
    changed = [row for row in assessment.effects if row.effect is not EffectKind.UNCHANGED]
    if changed:
        return f"against the time before it {_joined(changed)}"
    return "every measure is as before it" if assessment.effects else "not measured"


def change_text(row: MeasureEffect) -> str:
    """Return a measure without a plan and as measured."""
    title, _, write = LEDGER[row.measure]
    return f"{lowered(title)} {arrow(write(row.before), write(row.measured))}"


def effect_text(row: MeasureEffect) -> str:
    """Return a measure with its change, and whether it is above its limit."""
    text, write = change_text(row), LEDGER[row.measure][2]
    if row.effect is EffectKind.HARMED and row.change is not None:
        text += f" ({percent(row.change)} more)"
    if row.limit is None or (row.effect is EffectKind.HELPED and not row.is_exceeded):
        return text
    return f"{text}, {'above' if row.is_exceeded else 'within'} its limit of {write(row.limit)}"


def _joined(rows: Sequence[MeasureEffect]) -> str:
    return ", ".join(map(effect_text, rows))


def no_better_plan(proposal: Proposal) -> Headline:
    """Return the headline: what was reachable at best, and what would help."""
    judgement = Judgement.stored(proposal.judgement)
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
    page = reverse("cluster", args=[slug])
    match judgement.next_step:
        case NextStep.EXPLAIN if subject := _explained(judgement):
            return f"{page}?{urlencode({'explain': subject})}", "Explain the limit"
        case NextStep.CAPACITY:
            return f"{page}#nodes", "Show the nodes"
        case NextStep.PARAMETER if judgement.better is not None and judgement.better.is_limit:
            return f"{reverse('policy', args=[slug])}#section-watch", "Change the limit"
        case NextStep.EXCLUSIONS:
            return f"{reverse('policy', args=[slug])}#exclusions", "Show the exclusions"
    return page, "Show the cluster"


def _explained(judgement: Judgement) -> str:
    """Return what Explain opens for the measure that decided, "" if no alert has it."""
    decisive = {change.measure for change in judgement.changes}
    known = (str(kind.measure) for kind in KINDS.values() if kind.placed in decisive)
    return next((str(subject_of_measure(name)) for name in known), "")
