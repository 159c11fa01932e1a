"""The actions of a proposal: a filtered page of the diff, and files."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

from django.http import HttpResponse, JsonResponse

from controlplane.models import Cluster, Proposal
from controlplane.pagination.filter_text import MAX_LENGTH, BadFilter
from controlplane.pagination.listing import Filters, PlaceListing
from controlplane.pagination.pages import text_of, whole
from controlplane.proposals.executions.action_filter import FIELDS, matching_places
from controlplane.proposals.executions.action_status import (
    ActionRow,
    ActionStatus,
    Status,
    action_rows,
    statuses,
    steps_of,
)
from controlplane.proposals.listing import proposal_by_id, proposal_of_page
from dashboard.csv_files import csv_file
from dashboard.guards import PageRequest, cluster_page
from dashboard.lists import require_known
from dashboard.proposals.page import kind_words, obstacle_words
from dashboard.responses import render_page

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
