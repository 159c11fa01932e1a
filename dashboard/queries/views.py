"""Pages of queries: the list, one query with its results, and its end."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db.models import prefetch_related_objects
from django.http import HttpResponse, JsonResponse
from django.utils import timezone
from redis import RedisError

from controlplane.catalog.computations import OutputColumn, output_columns, text_of
from controlplane.catalog.queries import QueryListRow, computed_by, query_by_id, row_of
from controlplane.errors import Conflict, Invalid
from controlplane.explain.query_report import query_report
from controlplane.lists.kinds import KINDS
from controlplane.models import Cluster, Query
from controlplane.results.filters import STATES, WINDOW_PARAMETERS, WindowFilters
from controlplane.results.pages import keyed_windows, windows_page
from controlplane.results.window_map import place_of_key
from controlplane.topology.bulk_actions import RESTORE_PERIOD
from dashboard.figures.parts import Figure
from dashboard.figures.results import results_figure
from dashboard.guards import PageRequest, cluster_page
from dashboard.lists import require_known
from dashboard.lists.page import list_page, render_list_page
from dashboard.queries.bulk import toast_context
from dashboard.queries.detail_rows import headline, history, tasks_of, tiles
from dashboard.queries.headline import list_headline
from dashboard.queries.key_grouping_forms import grouping_context, grouping_values
from dashboard.queries.results import drawn_values, lines_of, result_rows
from dashboard.queries.retention_forms import UNITS, retention_values
from dashboard.queries.sql import highlighted, pseudo_sql, window_text
from dashboard.responses import render_page
from dashboard.streams.drop_rule_forms import drop_rule_row
from dashboard.streams.losses import queries_with_drops, query_losses

SHOWN_WINDOWS = 100
# Enough for some hundred windows of a few keys.
DRAWN_WINDOWS = 5_000
# Of the page and of its parts: filters of windows, the drawn aggregate, estimates or not.
RESULT_PARAMETERS = frozenset({*WINDOW_PARAMETERS, "value", "values"})


@cluster_page
def index(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render a page of queries, live ones by default."""
    shown = list_page(request, KINDS["queries"], others={"action"})
    context: dict[str, Any] = {"headline": list_headline(cluster)}
    context["dropping"] = queries_with_drops(cluster, [row.query.pk for row in shown.page.rows])
    context["restore_since"] = timezone.now() - RESTORE_PERIOD
    context["targets"] = cluster.nodes.filter(active=True).order_by("index")
    if not request.htmx:
        context |= toast_context(cluster, request.GET.get("action", ""))
    return render_list_page(request, "queries.html", "_queries_table.html", shown, context)


@cluster_page
def detail(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Show a query; the charts are drawn by the browser from `charts`."""
    require_known(request, RESULT_PARAMETERS)
    query = query_by_id(cluster, pk)
    # Several parts of the page read them.
    query.cluster = cluster
    prefetch_related_objects([query], "streams")
    row = row_of(query)
    context = {"row": row, "query": query} | _text(row)
    context |= edges_context(cluster, row.query) | {"units": list(UNITS)}
    if request.htmx and not request.htmx.boosted:
        return render_page(request, "_query_facts.html", context)
    context |= _results(request, cluster, row.query) | _report(row.query)
    context["code"] = highlighted(str(context["sql"]))
    return render_page(request, "query.html", context)


@cluster_page
def live(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Return headline and tiles of a query."""
    require_known(request, ())
    return render_page(request, "_query_live.html", _report(query_by_id(cluster, pk)))


@cluster_page
def results(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Return the table of the newest windows."""
    require_known(request, RESULT_PARAMETERS)
    query = query_by_id(cluster, pk)
    context = {"query": query} | _results(request, cluster, query)
    return render_page(request, "_results.html", context)


@cluster_page
def charts(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return the figure of the chosen aggregate as JSON, none where there is nothing to draw."""
    require_known(request, RESULT_PARAMETERS)
    query = query_by_id(cluster, pk)
    return JsonResponse({"figures": _figures(request, cluster, query)})


def _report(query: Query) -> dict[str, Any]:
    """Return what a query costs, why it is on its nodes, and which queries share its work."""
    report, losses = query_report(query), query_losses(query)
    placements = [(tasks_of(row, query.task_count), row) for row in report.placements]
    return {
        "query": query,
        "report": report,
        "headline": headline(report, losses),
        "tiles": tiles(report, losses),
        "losses": losses,
        "placements": placements,
        "history": history(report),
        "subject": f"query:{query.name}",
    }


def edges_context(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return key groupings, aggregator nodes, drop rules and retention: own and possible ones."""
    return grouping_context(query, grouping_values(query)) | {
        "aggregators": cluster.nodes.filter(index__in=query.aggregators).order_by("index"),
        "nodes": cluster.nodes.filter(active=True).order_by("index"),
        "drops": list(map(drop_rule_row, query.drops.select_related("stream", "query"))),
        "kept": retention_values(query.retention_s, query.retention_windows),
    }


def _text(row: QueryListRow) -> dict[str, Any]:
    """Return the text of a query for people, and the number of its tasks by node."""
    text = text_of(row.query)
    sql = pseudo_sql(text, row.left, row.query.task_count, row.right)
    hosted: Counter[int] = Counter()
    for node, first, stop in row.task_ranges:
        hosted[node] += stop - first
    nodes = sorted(hosted.items())
    return {"sql": sql, "window": window_text(text), "task_nodes": nodes}


def _results(request: PageRequest, cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return the rows of the results table; redis_away where they cannot be read now."""
    context = {
        "filter": request.GET,
        "states": STATES,
        "is_filtered": any(map(request.GET.get, ("from", "to", "key", "state", "cursor"))),
        "kept": retention_values(query.retention_s, query.retention_windows),
    }
    try:
        wanted = replace(WindowFilters.of(request.GET), limit=SHOWN_WINDOWS)
        columns = output_columns(computed_by(query))
        page = windows_page(cluster, query, wanted)
    except RedisError:
        return context | {"results": [], "redis_away": True}
    except Invalid as refusal:
        return context | {"results": [], "faults": refusal.fields}
    except Conflict as error:
        return context | {"results": [], "unreadable": str(error)}
    rows = result_rows(page.rows, columns, is_scaled=_is_scaled(request))
    return context | {
        "results": rows,
        "is_sampled": any(row.kept for row in rows),
        "is_scaled": _is_scaled(request),
        "columns": columns,
        "drawn": drawn_values(columns),
        "chosen": _chosen(request, columns),
        "has_place": bool(rows) and place_of_key(query, computed_by(query)) is not None,
        "older": _at_cursor(request, page.next) if page.next else "",
        "newest": _at_cursor(request, "") if wanted.after else "",
    }


def _at_cursor(request: PageRequest, cursor: str) -> str:
    """Return the query string of the windows behind a cursor, "" : of the first ones."""
    values = request.GET.copy()
    values["cursor"] = cursor
    return str(values.urlencode())


def _figures(request: PageRequest, cluster: Cluster, query: Query) -> dict[str, Figure]:
    try:
        value = _chosen(request, output_columns(computed_by(query)))
        windows = keyed_windows(cluster, query, DRAWN_WINDOWS) if value else []
    except (RedisError, Conflict):
        return {}
    lines = lines_of(windows, value, is_scaled=_is_scaled(request))
    return {value: results_figure(lines)} if windows else {}


def _is_scaled(request: PageRequest) -> bool:
    """Return whether counts and sums of a sample are scaled to estimates: the default."""
    return request.GET.get("values") != "computed"


def _chosen(request: PageRequest, columns: Sequence[OutputColumn]) -> str:
    """Return the aggregate to draw: the one that is named, or else the first."""
    drawn, named = drawn_values(columns), request.GET.get("value", "")
    return named if named in drawn else next(iter(drawn), "")
