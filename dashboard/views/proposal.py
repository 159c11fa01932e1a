"""One proposal: what it would change, how it is carried out, its charts, its moves as a file."""

import csv
from typing import Any

from django.http import HttpResponse, JsonResponse

from algorithms.errors import UnknownAlgorithm, UnknownPlanner
from algorithms.registry import algorithm
from controlplane.models import Cluster, Execution, Proposal, Step
from controlplane.pagination.pages import whole
from controlplane.policies.auto_approval import applies_by_itself
from controlplane.proposals import drift, verbs
from controlplane.proposals.states import ACTIVE
from controlplane.selectors.executions import (
    progress_of,
    step_seconds,
    steps_page,
    waiting_for,
)
from controlplane.selectors.moves import Fate, MoveRow, counted, fates, moves_page, steps_of
from controlplane.selectors.proposals import proposal_by_id
from dashboard.figures.proposal import StepShown, balance_of_steps, proposal_figures
from dashboard.guards import PageRequest, cluster_page
from dashboard.responses import render_list

MOVES_PER_PAGE = 25
STEPS_PER_PAGE = 12
MOVE_COLUMNS = ("query", "name", "first", "past", "from", "to", "bytes", "state")
UNDER_WAY = (Proposal.State.COMPUTING, Proposal.State.APPROVED, *ACTIVE)


@cluster_page
def detail(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Show a proposal with what it would change and what one may do with it."""
    proposal = proposal_by_id(cluster, pk)
    context = {"cluster": cluster, "proposal": proposal} | _review(request, proposal)
    return render_list(request, "proposal.html", "_proposal_body.html", context)


@cluster_page
def charts(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return the bars before and after and the imbalance on the way, as JSON."""
    proposal = proposal_by_id(cluster, pk)
    names = [node.name for node in proposal.snapshot.nodes]
    drawn = proposal_figures(names, proposal.before, proposal.after, proposal.path)
    return JsonResponse({"figures": drawn})


@cluster_page
def step_charts(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return the imbalance after each step, predicted and measured, as JSON."""
    proposal = proposal_by_id(cluster, pk)
    found = Step.objects.filter(execution__proposal=proposal).order_by("number")
    done = [step for step in found if step.state == Step.State.DONE]
    start = proposal.before.get("imbalance", 0.0)
    drawn = balance_of_steps(start, proposal.path, _shown(done))
    return JsonResponse({"figures": {"steps": drawn}})


@cluster_page
def moves_json(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return seal and moves as a file."""
    proposal = proposal_by_id(cluster, pk)
    answer = JsonResponse({"proposal": pk, "seal": proposal.seal, "moves": proposal.moves})
    answer["Content-Disposition"] = f'attachment; filename="proposal-{pk}-moves.json"'
    return answer


@cluster_page
def moves_csv(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Return the moves as a file, with what has become of each."""
    answer = HttpResponse(content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="proposal-{pk}-moves.csv"'
    proposal = proposal_by_id(cluster, pk)
    found = fates(proposal, steps_of(proposal))
    writer = csv.writer(answer)
    writer.writerow(MOVE_COLUMNS)
    for row in moves_page(proposal, found, 1, max(1, len(found))).rows:
        writer.writerow([_cell(value) for value in _columns(row)])
    return answer


def _columns(row: MoveRow) -> tuple[Any, ...]:
    where = (row.source, row.target, row.bytes)
    return (row.query, row.name, row.first, row.past, *where, str(row.fate))


def _cell(value: Any) -> Any:
    """Return the value so that no spreadsheet takes it for a formula."""
    text = str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def _review(request: PageRequest, proposal: Proposal) -> dict[str, Any]:
    found = fates(proposal, steps_of(proposal))
    page = whole(request.GET, "page", 1)
    ready = proposal.state == Proposal.State.READY
    return {
        "title": _title(proposal),
        "moves": moves_page(proposal, found, page, MOVES_PER_PAGE),
        "outcomes": counted(found) if _begun(found) else [],
        "tasks": sum(proposal.before.get("loads", [])),
        "node_count": len(proposal.before.get("loads", [])),
        "worst": max(proposal.path, default=None),
        "drift": drift.drift_of(proposal) if ready else None,
        "under_way": proposal.state in UNDER_WAY,
        "percent": round(100 * proposal.progress),
        "verdict": applies_by_itself(proposal) if ready else None,
        "buttons": sorted(verbs.offered(request.actor, proposal), key=lambda verb: verb.rank),
        "may_ask_anew": verbs.may_ask_anew(request.actor, proposal),
        "waits": waiting_for(proposal),
    } | _execution(request, proposal)


def _begun(found: list[Fate]) -> bool:
    return any(fate.step is not None for fate in found)


def _execution(request: PageRequest, proposal: Proposal) -> dict[str, Any]:
    execution = Execution.objects.filter(proposal=proposal).first()
    if execution is None:
        return {"execution": None}
    execution.proposal = proposal
    page = steps_page(execution, whole(request.GET, "steps", 1), STEPS_PER_PAGE)
    return {
        "execution": execution,
        "progress": progress_of(execution),
        "steps": page,
        "step_rows": [{"step": step, "seconds": step_seconds(step)} for step in page.rows],
    }


def _title(proposal: Proposal) -> str:
    try:
        return algorithm(proposal.planner, proposal.algorithm).title
    except (UnknownAlgorithm, UnknownPlanner):
        return proposal.algorithm


def _shown(steps: list[Step]) -> list[StepShown]:
    """Return steps as the chart draws them: a way back takes moves away from those made."""
    forward = [step for step in steps if step.direction == Execution.Direction.FORWARD]
    made = max((step.past for step in forward), default=0)
    left_out = sum(len(step.skipped) for step in forward)
    return [
        StepShown(
            number=step.number,
            made=step.past if step in forward else max(0, made - left_out - step.past),
            back=step.direction == Execution.Direction.BACK,
            before=step.balance_before,
            after=step.balance_after,
        )
        for step in steps
    ]
