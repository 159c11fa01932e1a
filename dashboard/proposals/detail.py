"""The page of a proposal: measures, execution, charts, and actions as a file."""

from typing import Any

from django.http import HttpResponse, JsonResponse

from algorithms.registry import algorithm_title
from controlplane.executions import verbs
from controlplane.executions.action_status import (
    ActionRow,
    actions_page,
    counted,
    statuses,
    steps_of,
)
from controlplane.executions.progress import (
    progress_of,
    step_seconds,
    steps_page,
    waiting_for,
)
from controlplane.models import Cluster, Execution, Proposal, Step
from controlplane.pagination.pages import whole
from controlplane.plans.proposal_states import ACTIVE
from controlplane.policies.auto_approval import decide_auto_approval
from controlplane.proposals import drift
from controlplane.proposals.listing import proposal_by_id
from dashboard.csv_files import csv_file
from dashboard.figures.proposal import StepShown, balance_of_steps, proposal_figures
from dashboard.guards import PageRequest, cluster_page
from dashboard.proposals.measure_rows import measure_rows, shown_outcome, shown_review
from dashboard.responses import render_list

ACTIONS_PER_PAGE = 25
STEPS_PER_PAGE = 12
ACTION_COLUMNS = (
    "kind", "object", "task", "before", "after", "bytes", "status", "step", "code",
)  # fmt: skip
UNDER_WAY = (Proposal.State.COMPUTING, Proposal.State.APPROVED, *ACTIVE)


@cluster_page
def detail(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Render a proposal with its measures and the allowed verbs."""
    proposal = proposal_by_id(cluster, pk)
    context = {"proposal": proposal} | _review(request, proposal)
    return render_list(request, "proposal.html", "_proposal_body.html", context)


@cluster_page
def charts(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return the charts of measures before and after and of the imbalance, as JSON."""
    proposal = proposal_by_id(cluster, pk)
    names = [node.name for node in proposal.snapshot.nodes]
    imbalance = proposal.imbalance_after
    drawn = proposal_figures(names, proposal.before, proposal.after, imbalance)
    return JsonResponse({"figures": drawn})


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
    rows = actions_page(proposal, action_statuses, 1, max(1, len(action_statuses))).rows
    return csv_file(f"proposal-{pk}-actions.csv", ACTION_COLUMNS, map(_columns, rows))


def _columns(row: ActionRow) -> tuple[Any, ...]:
    text, status = row.text, row.status
    changed = (text.kind, text.object, row.task, text.before, text.after, row.bytes)
    return (*changed, status.status, status.step, status.code)


def _review(request: PageRequest, proposal: Proposal) -> dict[str, Any]:
    action_statuses = statuses(proposal, steps_of(proposal))
    page = whole(request.GET, "page", 1)
    ready = proposal.state == Proposal.State.READY
    has_started = any(status.step is not None for status in action_statuses)
    return {
        "title": algorithm_title(proposal.planner, proposal.algorithm),
        "actions": actions_page(proposal, action_statuses, page, ACTIONS_PER_PAGE),
        "measures": measure_rows(
            proposal.planner, proposal.before, proposal.after, proposal.bounds
        ),
        "review": shown_review(proposal),
        "outcome": shown_outcome(proposal),
        "outcomes": counted(action_statuses) if has_started else [],
        "tasks": sum(proposal.before.get("loads", [])),
        "node_count": len(proposal.before.get("loads", [])),
        "worst": max(proposal.imbalance_after, default=None),
        "drift": _drift(proposal),
        "under_way": proposal.state in UNDER_WAY,
        "percent": round(100 * proposal.progress),
        "auto_approval": decide_auto_approval(proposal) if ready else None,
        "buttons": verbs.offered(request.actor, proposal),
        "may_request_again": verbs.may_request_again(request.actor, proposal),
    } | _execution(request, proposal)


def _drift(proposal: Proposal) -> drift.Drift | None:
    """Return the drift of a ready proposal, and of an execution while it drifts."""
    if proposal.state == Proposal.State.READY:
        return drift.drift_of(proposal)
    waits = proposal.state in (Proposal.State.APPROVED, Proposal.State.EXECUTING)
    if not waits or proposal.drifting_since is None:
        return None
    execution = Execution.objects.filter(proposal=proposal).first()
    return drift.drift_of(proposal, execution.done if execution is not None else 0)


def _execution(request: PageRequest, proposal: Proposal) -> dict[str, Any]:
    execution = Execution.objects.filter(proposal=proposal).first()
    if execution is None:
        return {"execution": None, "waits": waiting_for(proposal)}
    execution.proposal = proposal
    page = steps_page(execution, whole(request.GET, "steps", 1), STEPS_PER_PAGE)
    return {
        "execution": execution,
        "waits": waiting_for(proposal, execution.waits),
        "progress": progress_of(execution),
        "steps": page,
        "step_rows": [{"step": step, "seconds": step_seconds(step)} for step in page.rows],
    }


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
