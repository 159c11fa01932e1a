"""The page of a proposal: what it will do, its execution, and the proof afterwards."""

from datetime import timedelta
from typing import Final

from django.http import HttpResponse, JsonResponse
from django.utils import timezone

from controlplane.clusters.tour import PageKind, note_page
from controlplane.models import Cluster, Execution, LedgerEntry, Proposal, Step
from controlplane.planning.plan_summary import PlanSummary
from controlplane.plans.proposal_states import ENDED
from controlplane.policies.store import policy_of
from controlplane.proposals.counterfactual import counterfactual
from controlplane.proposals.ledger import applied_actions
from controlplane.proposals.listing import proposal_by_id, proposal_of_page
from controlplane.proposals.outcome import limits_of
from dashboard.figures.proof import Proof, proof_figures
from dashboard.figures.proposal import StepShown, balance_of_steps, imbalance_by_action
from dashboard.guards import PageRequest, cluster_page
from dashboard.lists import require_known
from dashboard.proposals.actions import actions_context
from dashboard.proposals.execution import execution_context
from dashboard.proposals.page import page_context
from dashboard.proposals.page_headline import page_headline
from dashboard.responses import render_page

# The chart of a proof begins so long before the execution, and ends so long after it.
_BEFORE: Final = timedelta(minutes=10)
_AFTER: Final = timedelta(minutes=45)


@cluster_page
def detail(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Render a proposal; a live update has all parts except the actions and the comments."""
    require_known(request, {"page", "steps", "filter", "plan"})
    proposal = proposal_of_page(cluster, pk)
    if request.htmx and request.GET.get("plan") == "none" and proposal.after:
        # The page was rendered before there was a plan, and has no place for it.
        return HttpResponse(headers={"HX-Refresh": "true"})
    is_executed = proposal.state == Proposal.State.DONE
    note_page(request.actor, cluster, PageKind.PROOF if is_executed else PageKind.PROPOSAL)
    context = page_context(request.actor, cluster, proposal)
    context |= execution_context(request, proposal, context["execution"])
    context["headline"] = page_headline(proposal, context)
    context["is_over"] = proposal.state in ENDED
    context["is_dead_end"] = context["is_over"] and not is_executed
    if request.htmx and not request.htmx.boosted:
        return render_page(request, "_proposal_live.html", context)
    if proposal.after:
        context |= actions_context(request, proposal)
    return render_page(request, "proposal.html", context)


@cluster_page
def charts(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return the chart of the imbalance during the execution, as JSON."""
    proposal = proposal_of_page(cluster, pk)
    limit = limits_of(proposal, policy_of(cluster)).get("imbalance")
    summary = PlanSummary.from_json(proposal.summary)
    start = proposal.before.get("imbalance", 0.0)
    drawn = imbalance_by_action(start, summary.places, summary.imbalance, limit)
    return JsonResponse({"figures": {"imbalance": drawn}})


@cluster_page
def step_charts(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return the imbalance after each step, predicted and measured, as JSON."""
    proposal = proposal_by_id(cluster, pk)
    steps = Step.objects.filter(execution__proposal=proposal).order_by("number")
    done = [step for step in steps if step.state == Step.State.DONE]
    start = proposal.before.get("imbalance", 0.0)
    drawn = balance_of_steps(start, proposal.imbalance_after, _shown(done))
    return JsonResponse({"figures": {"steps": drawn}})


@cluster_page
def proof_charts(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return measured, approved, expected and counterfactual values over time, as JSON."""
    proposal = proposal_by_id(cluster, pk)
    entry = LedgerEntry.objects.filter(proposal=proposal).first()
    execution = Execution.objects.filter(proposal=proposal).first()
    if entry is None or execution is None or execution.finished_at is None:
        return JsonResponse({"figures": {}})
    execution.proposal = proposal
    applied = applied_actions(execution)
    start, stop = execution.started_at - _BEFORE, execution.finished_at + _AFTER
    series = counterfactual(execution, applied, start, min(stop, timezone.now()))
    if series is None:
        return JsonResponse({"figures": {}})
    proof = Proof(
        number=pk,
        series=series,
        begin=execution.started_at,
        end=execution.finished_at,
        approved=entry.approved,
        expected=entry.expected,
        limits=limits_of(proposal, policy_of(cluster)),
    )
    return JsonResponse({"figures": proof_figures(proof)})


def _shown(steps: list[Step]) -> list[StepShown]:
    """Return the points of the chart of steps; a rollback reduces the applied actions."""
    forward = [step for step in steps if step.direction == Execution.Direction.FORWARD]
    made = max((step.stop for step in forward), default=0)
    skipped = sum(len(step.skipped) for step in forward)
    return [
        StepShown(
            number=step.number,
            made=step.stop if step in forward else max(0, made - skipped - step.stop),
            back=step.direction == Execution.Direction.BACK,
            before=step.balance_before,
            after=step.balance_after,
        )
        for step in steps
    ]
