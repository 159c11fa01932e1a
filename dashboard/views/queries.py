"""Queries: the list, one of them with its results, ending; views.query_new submits."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST
from redis import RedisError

from controlplane.errors import Conflict, Forbidden, WeirError
from controlplane.models import Cluster, Query
from controlplane.selectors.computations import text_of
from controlplane.selectors.queries import (
    QueryFilters,
    computed_by,
    queries_page,
    query_by_id,
    query_results,
    state_counts,
)
from controlplane.selectors.query_rows import QueryRow
from controlplane.selectors.windows import keyed_windows
from controlplane.services import queries
from controlplane.services.texts import OutputColumn, output_columns
from controlplane.wire.results import WindowResult
from dashboard.figures.keyed import keyed_figure
from dashboard.figures.parts import Figure
from dashboard.figures.results import tile_figure, unit_of
from dashboard.guards import PageRequest, cluster_page
from dashboard.keyed import drawn_values, keyed_rows, lines_of
from dashboard.query_arcs import splitting
from dashboard.query_sql import pseudo_sql, window_words
from dashboard.results import busiest_tiles, result_rows, stream_names
from dashboard.shown import show, show_list, tell, tell_refusal

PER_PAGE = 100
# The table of windows: of a mice query, and of one with text.
RESULTS = {False: "_results.html", True: "_keyed_results.html"}
SHOWN_WINDOWS = 60
READ_WINDOWS = 1000
SHOWN_KEYED = 100
# Enough for some hundred windows of a few keys.
DRAWN_KEYED = 20_000


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
def detail(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Show a query; the charts are drawn by the browser from `charts`."""
    row = query_by_id(cluster, pk)
    context = {"cluster": cluster, "row": row, "query": row.query} | _text(row)
    context |= splitting(cluster, row.query)
    context["results_template"] = f"dashboard/{RESULTS[bool(row.query.text)]}"
    whole = context | {"tile": request.GET.get("tile", "")} | _results(request, cluster, row.query)
    return show_list(request, "query.html", "_query_facts.html", whole)


@cluster_page
def results(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Return the table of the newest windows."""
    query = query_by_id(cluster, pk).query
    context = {"cluster": cluster, "query": query} | _results(request, cluster, query)
    return show(request, RESULTS[bool(query.text)], context)


@cluster_page
def charts(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return one figure per shown stream, or one of the chosen value, as JSON."""
    row = query_by_id(cluster, pk)
    if row.query.text:
        return JsonResponse({"figures": _keyed_figures(request, cluster, row.query)})
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


def _text(row: QueryRow) -> dict[str, Any]:
    """Return a query with text as one reads it."""
    text = text_of(row.query)
    if text is None:
        return {}
    sql = pseudo_sql(text, row.left, row.query.task_count, row.right)
    nodes = [(node, past - first) for node, first, past in row.spans]
    return {"sql": sql, "window": window_words(text), "task_nodes": nodes}


def _results(request: PageRequest, cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return the rows of the results table; redis_away where they cannot be read now."""
    return (_keyed_results if query.text else _mice_results)(request, cluster, query)


def _keyed_results(request: PageRequest, cluster: Cluster, query: Query) -> dict[str, Any]:
    try:
        columns = output_columns(computed_by(query))
        windows = keyed_windows(cluster, query, SHOWN_KEYED)
    except RedisError:
        return {"keyed": [], "redis_away": True}
    except Conflict as gone:
        return {"keyed": [], "unreadable": str(gone)}
    return {
        "keyed": keyed_rows(windows, columns),
        "columns": columns,
        "drawn": drawn_values(columns),
        "chosen": _chosen(request, columns),
    }


def _keyed_figures(request: PageRequest, cluster: Cluster, query: Query) -> dict[str, Figure]:
    try:
        value = _chosen(request, output_columns(computed_by(query)))
        windows = keyed_windows(cluster, query, DRAWN_KEYED) if value else []
    except (RedisError, Conflict):
        return {}
    return {value: keyed_figure(lines_of(windows, value))} if windows else {}


def _chosen(request: PageRequest, columns: Sequence[OutputColumn]) -> str:
    """Return the aggregate to draw: the one that is named, or else the first."""
    drawn, named = drawn_values(columns), request.GET.get("value", "")
    return named if named in drawn else next(iter(drawn), "")


def _mice_results(request: PageRequest, cluster: Cluster, query: Query) -> dict[str, Any]:
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
