"""Pages of comparisons: form of algorithms and budgets, table of candidates, charts."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect, JsonResponse, QueryDict
from django.shortcuts import redirect

from algorithms.registry import algorithm_title
from algorithms.vocabulary import ParameterField
from controlplane.access.roles import require_operator
from controlplane.errors import Conflict, Fields, Invalid
from controlplane.models import Cluster
from controlplane.pagination.listing import Filters
from controlplane.pagination.pages import whole
from controlplane.planning.budget import KINDS
from controlplane.proposals import comparisons, decisions
from controlplane.proposals.comparison_table import compared, comparison_by_id, comparisons_listing
from controlplane.proposals.comparisons import PlannerRequest
from controlplane.proposals.listing import proposal_by_id
from controlplane.proposals.requests import OfferedAlgorithm, OfferedPlanner, offered_planners
from dashboard.figures.comparison import PlanPoint, comparison_figures
from dashboard.forms import form_fields, number, optional, parameters, read, words_of
from dashboard.guards import PageRequest, cluster_action, cluster_page
from dashboard.lists import page_number
from dashboard.plan_names import budget_name, parameters_name, series_names
from dashboard.responses import cluster_change, notify_refusal, render_list, render_page
from dashboard.thresholds import STATE_CHIPS

PER_PAGE = 20
LEVELS = "levels"


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Show the form and the newest comparisons."""
    return _index(request, cluster, comparison_form(cluster))


@cluster_action
def ask(request: PageRequest, cluster: Cluster) -> HttpResponse | HttpResponseRedirect:
    """Request a comparison."""
    require_operator(request.actor, cluster)
    try:
        wanted, budgets = requests_in(cluster, request.POST), budgets_of(request.POST)
        comparison = comparisons.compare(request.actor, cluster, wanted, budgets)
    except Invalid as invalid:
        return _refuse(request, cluster, invalid.fields)
    except Conflict as busy:
        notify_refusal(request, busy)
        return redirect("comparisons", cluster.slug)
    return redirect("comparison", cluster.slug, comparison.pk)


@cluster_page
def detail(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Show the table of a comparison: progress, then measures and the Pareto set."""
    table = compared(comparison_by_id(cluster, pk))
    rows = [
        {
            "one": candidate,
            "name": algorithm_title(candidate.planner, candidate.algorithm),
            "parameters": parameters_name(
                candidate.planner, candidate.algorithm, candidate.parameters
            ),
            "budget": budget_name(candidate.budget),
            "percent": round(100 * candidate.progress),
            "grade": STATE_CHIPS[candidate.state][0],
            "icon": STATE_CHIPS[candidate.state][1],
        }
        for candidate in table.candidates
    ]
    context = {"found": table, "rows": rows}
    return render_list(request, "comparison.html", "_comparison_body.html", context)


@cluster_page
def charts(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return the plans as points, as JSON; each point names the page of its proposal."""
    table = compared(comparison_by_id(cluster, pk))
    known = [candidate for candidate in table.candidates if candidate.has_plan]
    names = series_names(
        [(candidate.planner, candidate.algorithm, candidate.parameters) for candidate in known]
    )
    plans = [
        PlanPoint(
            series=name,
            name=f"Proposal {candidate.proposal}, {budget_name(candidate.budget) or 'no limit'}",
            url=f"/clusters/{cluster.slug}/proposals/{candidate.proposal}/",
            cost=getattr(candidate, table.cost) or 0,
            imbalance=candidate.imbalance or 0.0,
            replication_factor=candidate.replication_factor,
            pareto=candidate.pareto,
        )
        for candidate, name in zip(known, names, strict=True)
    ]
    drawn = comparison_figures(plans, table.cost, table.imbalance, table.replication_factor)
    return JsonResponse({"figures": drawn})


@cluster_change("comparison", "pk")
def cancel(request: PageRequest, cluster: Cluster, pk: int) -> str:
    """Cancel all candidates that are being computed, or the one in the form."""
    comparison = comparison_by_id(cluster, pk)
    if candidate := whole(request.POST, "proposal", 0):
        decisions.cancel(request.actor, proposal_by_id(cluster, candidate))
        return f"Proposal {candidate} is cancelled."
    count = comparisons.cancel(request.actor, comparison)
    return f"{count} plan{'' if count == 1 else 's'} cancelled."


def _refuse(request: PageRequest, cluster: Cluster, faults: Fields) -> HttpResponse:
    form = comparison_form(cluster, request.POST, faults)
    shown = {*form["values"], "asked", "algorithm", "planner"}
    shown |= {
        row["field"].name
        for choices in form["planners"].values()
        for choice in choices
        for row in choice["fields"]
    }
    # Errors by the name of a parameter belong to no field of this form.
    form["others"] += [f"{n}: {t}" for n, lines in faults.items() if n not in shown for t in lines]
    return _index(request, cluster, form, 422)


def _index(
    request: PageRequest, cluster: Cluster, form: dict[str, Any], status: int = 200
) -> HttpResponse:
    page = comparisons_listing(cluster, Filters(page_number(request), PER_PAGE)).page
    return render_page(request, "comparisons.html", {"page": page} | form, status)


def comparison_form(
    cluster: Cluster, sent: QueryDict | None = None, errors: Fields | None = None
) -> dict[str, Any]:
    """Return the form with the submitted values, or the default algorithms and levels."""
    faults, values = errors or {}, texts(sent)
    planners = {
        planner.adapter.planner.title: [
            _choice(planner, place, offered, sent, faults)
            for place, offered in enumerate(planner.algorithms)
        ]
        for planner in offered_planners(cluster)
    }
    every = [choice for choices in planners.values() for choice in choices]
    chosen = [choice for choice in every if choice["ticked"]]
    others = {
        name: [choice for choice in choices if not choice["ticked"]]
        for name, choices in planners.items()
    }
    return {
        "chosen": chosen,
        "planners": {name: choices for name, choices in others.items() if choices},
        "others_count": len(every) - len(chosen),
        "values": {name: values.get(name, "") for name in (*KINDS, LEVELS)},
        "errors": faults,
        "others": [
            message
            for name in ("asked", "algorithm", "planner")
            for message in faults.get(name, [])
        ],
    }


def texts(sent: QueryDict | None) -> dict[str, str]:
    """Return the last text of every field."""
    return {name: str(sent[name]) for name in sent} if sent is not None else {}


def _choice(
    planner: OfferedPlanner,
    place: int,
    offered: OfferedAlgorithm,
    sent: QueryDict | None,
    errors: Fields,
) -> dict[str, Any]:
    """Return a selectable algorithm with the value of its checkbox and its parameters."""
    adapter = planner.adapter
    name = f"{adapter.name}.{offered.algorithm.name}"
    usual = place < adapter.compared and planner.missing is None
    ticked = name in sent.getlist("asked") if sent is not None else usual
    fields = form_fields(_named(adapter.name, offered), texts(sent), errors)
    return {"value": name, "offered": offered, "ticked": ticked, "fields": fields}


def _named(planner: str, offered: OfferedAlgorithm) -> list[ParameterField]:
    """Return the fields with names that are unique in the form."""
    return [
        replace(field, name=f"{planner}.{offered.algorithm.name}.{field.name}")
        for field in offered.fields
    ]


def requests_in(cluster: Cluster, sent: QueryDict) -> list[PlannerRequest]:
    """Return the requested planners. Raises `Invalid` for invalid text."""
    wanted, requested = set(sent.getlist("asked")), []
    faults: Fields = {}
    for planner in offered_planners(cluster):
        planner_name = planner.adapter.name
        for offered in planner.algorithms:
            name = offered.algorithm.name
            if f"{planner_name}.{name}" not in wanted:
                continue
            try:
                given = parameters(_named(planner_name, offered), texts(sent))
            except Invalid as invalid:
                faults |= invalid.fields
                continue
            plain = {key.rpartition(".")[2]: value for key, value in given.items()}
            requested.append(PlannerRequest(planner_name, name, plain))
    if faults:
        raise Invalid(faults)
    return requested


def budgets_of(sent: Mapping[str, str]) -> list[dict[str, float]]:
    """Return the budgets: every level (a percentage of a plan's bytes) with the fixed limits.

    Raises `Invalid` for invalid numbers.
    """
    readers = dict.fromkeys(KINDS, optional(_limit)) | {LEVELS: _levels}
    given = read(sent, **readers)
    levels = given.pop(LEVELS)
    fixed = {name: value for name, value in given.items() if value is not None}
    return [fixed | ({} if share >= 1 else {"share": share}) for share in levels or [1.0]]


def _levels(text: str) -> list[float]:
    levels = [number(word) / 100 for word in words_of(text.replace("%", " "))]
    if any(not 0 <= share <= 1 for share in levels):
        raise ValueError("Must be percentages from 0 to 100, separated by commas")
    return levels


def _limit(text: str) -> float:
    value = number(text.replace("_", ""))
    if not 0 <= value < inf:
        raise ValueError("Must be a number of at least 0")
    return value
