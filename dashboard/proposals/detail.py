"""The page of a proposal: what it will do, its execution, and the proof afterwards.

Its actions are a filtered page of the diff, and files.
"""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.http import HttpResponse, JsonResponse
from django.utils import timezone

from controlplane.clusters.tour import PageKind, note_page
from controlplane.models import Cluster, Execution, LedgerEntry, Proposal, Step
from controlplane.pagination.filter_text import MAX_LENGTH, BadFilter
from controlplane.pagination.listing import Filters, PlaceListing
from controlplane.pagination.pages import text_of, whole
from controlplane.planning.plan_summary import PlanSummary
from controlplane.plans.proposal_states import ENDED
from controlplane.policies.store import policy_of
from controlplane.proposals.counterfactual import counterfactual
from controlplane.proposals.executions.action_filter import FIELDS, matching_places
from controlplane.proposals.executions.action_status import (
    ActionRow,
    ActionStatus,
    Status,
    action_rows,
    statuses,
    steps_of,
)
from controlplane.proposals.ledger import applied_actions
from controlplane.proposals.listing import proposal_by_id, proposal_of_page
from controlplane.proposals.outcome import limits_of
from dashboard.csv_files import csv_file
from dashboard.figures.proof import Proof, proof_figures
from dashboard.figures.proposal import StepShown, balance_of_steps, imbalance_by_action
from dashboard.guards import PageRequest, cluster_page
from dashboard.lists import require_known
from dashboard.proposals.execution import execution_context
from dashboard.proposals.page import kind_words, obstacle_words, page_context
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


ACTIONS_PER_PAGE: Final = 25
ACTION_COLUMNS: Final = (
    "kind", "object", "task", "before", "after", "bytes", "status", "step", "code",
)  # fmt: skip
_GRADES: Final = {
    Status.APPLIED: "good", Status.APPLYING: "info", Status.REVERTING: "warn",
}  # fmt: skip


@cluster_page
def index(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Return a page of the actions that the filter selects."""
    require_known(request, {"page", "steps", "filter"})
    proposal = proposal_of_page(cluster, pk)
    context = {"proposal": proposal} | actions_context(request, proposal)
    return render_page(request, "_proposal_actions.html", context)


@cluster_page
def actions_json(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return seal and actions as a file."""
    proposal = proposal_by_id(cluster, pk)
    content = {"proposal": pk, "seal": proposal.seal, "actions": proposal.plan.to_json()}
    headers = {"Content-Disposition": f'attachment; filename="proposal-{pk}-actions.json"'}
    return JsonResponse(content, headers=headers)


@cluster_page
def actions_csv(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Return the actions as a file, each with its status."""
    proposal = proposal_by_id(cluster, pk)
    action_statuses = statuses(proposal, steps_of(proposal))
    rows = action_rows(proposal, action_statuses, range(len(action_statuses)))
    return csv_file(f"proposal-{pk}-actions.csv", ACTION_COLUMNS, map(_columns, rows))


def actions_context(request: PageRequest, proposal: Proposal) -> dict[str, Any]:
    """Return a page of the actions, with the fault of the filter if it cannot be read."""
    text = text_of(request.GET, "filter", MAX_LENGTH)
    action_statuses = statuses(proposal, steps_of(proposal))
    fault = ""
    try:
        places = matching_places(proposal, action_statuses, text)
    except BadFilter as bad:
        places, fault = range(0), "; ".join(bad.fields["filter"])
    filters = Filters(whole(request.GET, "page", 1), ACTIONS_PER_PAGE)
    page = PlaceListing(places, partial(action_rows, proposal, action_statuses), filters).page
    return {
        "actions": page,
        "diff": list(_diff(page.rows, is_ready=proposal.state in ("ready", "approved"))),
        "tabs": _tabs(proposal, len(action_statuses), text),
        "filter": text,
        "filter_fault": fault,
        "filter_fields": FIELDS,
        "has_tasks": any(row.task is not None for row in page.rows),
    }


def _diff(rows: Iterable[ActionRow], *, is_ready: bool) -> Iterator[dict[str, Any]]:
    """Yield the rows of the diff; `group`: the title of the first of several of a kind, else ""."""
    last = ""
    for row in rows:
        kind, title = kind_words(row.text.kind)
        text, grade = _status(row.status, is_ready=is_ready)
        group = title if title != last else ""
        yield {"row": row, "kind": kind, "group": group, "status": text, "grade": grade}
        last = title


def _status(status: ActionStatus, *, is_ready: bool) -> tuple[str, str]:
    """Return the words and the grade of a status."""
    step = f" in step {status.step}" if status.step is not None else ""
    if status.code:
        return f"skipped: {obstacle_words(status.code)}", ""
    if status.status is Status.WAITING and is_ready:
        return "applies", "good"
    return f"{status.status}{step}", _GRADES.get(status.status, "")


def _tabs(proposal: Proposal, total: int, text: str) -> list[dict[str, Any]]:
    """Return the kinds of actions with their numbers and the filters that select them."""
    kinds: dict[str, int] = proposal.summary.get("kinds", {})
    tabs = [("All", total, "")]
    if len(kinds) > 1:
        for kind, count in sorted(kinds.items(), key=lambda pair: -pair[1]):
            tabs.append((kind_words(kind)[1], count, f"kind:{kind}"))
    return [
        {"title": title, "count": count, "filter": selects, "is_selected": text == selects}
        for title, count, selects in tabs
    ]


def _columns(row: ActionRow) -> tuple[Any, ...]:
    text, status = row.text, row.status
    changed = (text.kind, text.object, row.task, text.before, text.after, row.bytes)
    return (*changed, status.status, status.step, status.code)
