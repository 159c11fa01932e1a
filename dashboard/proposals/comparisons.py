"""Pages of comparisons: form, table of candidates, charts of cost and gain."""

from typing import Any

from django.http import HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect

from algorithms.registry import algorithm_title
from controlplane.access.roles import require_operator
from controlplane.errors import Conflict, Fields, Invalid
from controlplane.models import Cluster
from controlplane.pagination.listing import Filters
from controlplane.pagination.pages import whole
from controlplane.proposals import comparisons, decisions
from controlplane.proposals.comparison_table import compared, comparison_by_id, comparisons_listing
from controlplane.proposals.listing import proposal_by_id
from dashboard.figures.comparison import PlanPoint, comparison_figures
from dashboard.guards import PageRequest, cluster_action, cluster_page
from dashboard.lists import page_number
from dashboard.plan_names import budget_name, parameters_name, series_names
from dashboard.proposals.comparison_forms import budgets_of, comparison_form, requests_in
from dashboard.responses import cluster_change, notify_refusal, render_list, render_page
from dashboard.thresholds import STATE_CHIPS

PER_PAGE = 20


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
