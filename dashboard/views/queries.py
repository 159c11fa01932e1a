"""Queries: the list, submitting, one of them with its results, ending."""

from typing import Any

from django.http import HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST
from redis import RedisError

from controlplane.errors import Fields, Forbidden, Invalid, WeirError
from controlplane.models import Cluster, Query
from controlplane.selectors.queries import (
    QueryFilters,
    queries_page,
    query_by_id,
    query_results,
    state_counts,
)
from controlplane.services import queries
from controlplane.services.access import require_operator
from controlplane.wire.blocks import VALUE_COLUMNS
from controlplane.wire.results import WindowResult
from dashboard.figures.results import tile_figure, unit_of
from dashboard.forms import query_spec
from dashboard.guards import PageRequest, cluster_page
from dashboard.results import busiest_tiles, result_rows, stream_names
from dashboard.shown import show, show_list, tell, tell_refusal

PER_PAGE = 100
DEFAULTS = {"window_s": "60", "value": "speed"}
SHOWN_WINDOWS = 60
READ_WINDOWS = 1000


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Show a page of queries; without a state in the URL, those that live."""
    filters = QueryFilters.of({"per_page": PER_PAGE, "state": "live"} | request.GET.dict())
    context = {
        "cluster": cluster,
        "filters": filters,
        "page": queries_page(cluster, filters),
        "counts": state_counts(cluster),
        "nodes": cluster.nodes.order_by("index"),
        "states": ["live", *Query.State.values],
    }
    return show_list(request, "queries.html", "_queries_table.html", context)


@cluster_page
def new(request: PageRequest, cluster: Cluster) -> HttpResponse | HttpResponseRedirect:
    """Show the form, or submit what it holds."""
    require_operator(request.actor)
    if request.method != "POST":
        return _form(request, cluster, DEFAULTS | request.GET.dict(), {})
    try:
        query = queries.submit(request.actor, cluster, query_spec(request.POST.dict()))
    except Invalid as invalid:
        return _form(request, cluster, request.POST.dict(), invalid.fields, status=422)
    tell(request, f"{query.name} is submitted and waits for a node.")
    return redirect("query", cluster.slug, query.pk)


@cluster_page
def check(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return what is wrong with one field of the form while it is filled in."""
    field = request.POST.get("field", "")
    faults = _faults(cluster, request.POST.dict()).get(field, [])
    return show(request, "_field_errors.html", {"field": field, "faults": faults, "checked": True})


@cluster_page
def detail(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Show a query; the charts are drawn by the browser from `charts`."""
    row = query_by_id(cluster, pk)
    context = {"cluster": cluster, "row": row, "query": row.query}
    whole = context | {"tile": request.GET.get("tile", "")} | _results(request, cluster, row.query)
    return show_list(request, "query.html", "_query_facts.html", whole)


@cluster_page
def results(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Return the table of the newest windows."""
    query = query_by_id(cluster, pk).query
    context = {"cluster": cluster, "query": query} | _results(request, cluster, query)
    return show(request, "_results.html", context)


@cluster_page
def charts(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return one figure per shown stream, as JSON."""
    row = query_by_id(cluster, pk)
    names = stream_names(row.query)
    tiles = busiest_tiles(_windows(cluster, row.query), names, request.GET.get("tile", ""))
    figures = {
        names[stream]: tile_figure(windows, row.query.value) for stream, windows in tiles.items()
    }
    return JsonResponse({"figures": figures})


@cluster_page
def end(request: PageRequest, cluster: Cluster) -> HttpResponseRedirect:
    """End the named queries."""
    names = request.POST.getlist("names")
    try:
        ended = queries.end(request.actor, cluster, names, request.POST.get("reason", ""))
        tell(request, "The query is ending." if ended == 1 else f"{ended} queries are ending.")
    except Forbidden:
        raise
    except WeirError as refusal:
        tell_refusal(request, refusal)
    return redirect(reverse("queries", args=[cluster.slug]))


def _form(
    request: PageRequest,
    cluster: Cluster,
    values: dict[str, Any],
    errors: Fields,
    status: int = 200,
) -> HttpResponse:
    context = {"cluster": cluster, "values": values, "errors": errors, "columns": VALUE_COLUMNS}
    return show(request, "query_new.html", context, status)


def _faults(cluster: Cluster, values: dict[str, str]) -> Fields:
    try:
        queries.check(cluster, [query_spec(values)])
    except Invalid as invalid:
        return invalid.rows.get(0) or invalid.fields
    return {}


def _results(request: PageRequest, cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return the rows of the results table; redis_away where they cannot be read now."""
    names, tile = stream_names(query), request.GET.get("tile", "")
    try:
        windows = query_results(cluster, query, READ_WINDOWS)
    except RedisError:
        return {"results": [], "redis_away": True, "tiles": sorted(names.values())}
    rows = result_rows(windows, names, query.value, tile)
    return {
        "results": rows[:SHOWN_WINDOWS],
        "tiles": sorted(names.values()),
        "unit": unit_of(query.value),
    }


def _windows(cluster: Cluster, query: Query) -> list[WindowResult]:
    try:
        return query_results(cluster, query, READ_WINDOWS)
    except RedisError:
        return []


post_end: Any = require_POST(end)
post_check: Any = require_POST(check)
