"""The key microscope of a query: shares of keys, loads of tasks, and what groupings would give."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.http import HttpResponse, JsonResponse
from django_htmx.http import HttpResponseClientRefresh
from redis import RedisError

from algorithms.partitioning.catalog import GROUPINGS
from controlplane.catalog.computations import text_of
from controlplane.catalog.queries import query_by_id, row_of
from controlplane.models import Cluster, Query
from controlplane.models.query import LIVE_STATES
from controlplane.planners.partitioning.key_report import KeyReport, read_key_report
from controlplane.planners.partitioning.skew_history import SkewPoint, has_history
from controlplane.planners.partitioning.skew_history import history as skew_history
from controlplane.planning.adapters import adapters
from controlplane.policies.store import policy_of
from dashboard.figures.keys import skew_figures
from dashboard.forms import form_fields
from dashboard.guards import PageRequest, cluster_page
from dashboard.queries.key_groupings import grouping_charts
from dashboard.queries.key_rows import (
    columns_of,
    imbalance_grade,
    key_bars,
    place_rows,
    status_of,
    trend_of,
)
from dashboard.queries.key_tiles import key_tiles
from dashboard.queries.views import edges_context
from dashboard.range_parameters import RANGE_PARAMETERS, requested_range
from dashboard.responses import render_page
from dashboard.thresholds import AGE_S
from dashboard.time_range import RANGES, TimeRange

PLANNER: Final = "partitioning"
# The time range of the history, unless the URL has another one.
RANGE: Final = "6h"
# The rows of the table of the history; the chart shows every point.
HISTORY_ROWS: Final = 30
# The range of an ended query is so much longer, for its last sample.
_AFTER_END: Final = timedelta(minutes=1)
NO_CONTENT: Final = 204


@cluster_page
def index(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Show the keys of a query; the charts are drawn by the browser from `charts`."""
    query = query_by_id(cluster, pk)
    report, time_range = _report_of(query), _range_of(request, query)
    context = {"query": query, "row": row_of(query), "key": text_of(query).key}
    context |= {"span": time_range}
    context |= edges_context(cluster, query) | {"empty": _why_empty(cluster, query, report)}
    context["has_charts"] = not context["empty"] or has_history(query)
    if context["has_charts"]:
        context |= _history_context(cluster, _points(query, time_range))
    if report is not None and not context["empty"]:
        context |= _live_context(cluster, report) | _groupings_context(cluster, report)
        context |= _request_context(cluster)
    return render_page(request, "query_keys.html", context)


@cluster_page
def live(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Return the parts that change with each sample.

    The page is loaded again when it has become empty, or is empty no longer.
    """
    query = query_by_id(cluster, pk)
    report = _report_of(query)
    empty = report is None or bool(_why_empty(cluster, query, report))
    if empty != (request.htmx.target == "key-empty"):
        return HttpResponseClientRefresh()
    if report is None or empty:
        return HttpResponse(status=NO_CONTENT)
    context = {"query": query} | _live_context(cluster, report)
    return render_page(request, "_key_live.html", context)


@cluster_page
def groupings(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Return the loads under each grouping."""
    query = query_by_id(cluster, pk)
    report = _report_of(query)
    if report is None or _why_empty(cluster, query, report):
        return HttpResponse(status=NO_CONTENT)
    context = {"query": query} | _groupings_context(cluster, report)
    return render_page(request, "_key_groupings.html", context)


@cluster_page
def history(request: PageRequest, cluster: Cluster, pk: int) -> HttpResponse:
    """Return the table of the history in the time range."""
    query = query_by_id(cluster, pk)
    points = _points(query, _range_of(request, query))
    context = {"query": query} | _history_context(cluster, points)
    return render_page(request, "_key_history.html", context)


@cluster_page
def charts(request: PageRequest, cluster: Cluster, pk: int) -> JsonResponse:
    """Return the charts of the skew over the time range as JSON."""
    query = query_by_id(cluster, pk)
    time_range = _range_of(request, query)
    holds, unit = _largest_share(_report_of(query))
    figures = skew_figures(
        _points(query, time_range),
        {name: info.title for name, info in GROUPINGS.items()},
        holds=holds,
        unit=unit,
        limit=policy_of(cluster).watch_skew,
        shown=time_range.milliseconds,
    )
    return JsonResponse({"figures": figures})


def _largest_share(report: KeyReport | None) -> tuple[float | None, str]:
    """Return the share of records that the largest task holds, None if unknown; node or task."""
    if report is None or not report.tasks:
        return None, "task"
    columns = columns_of(report.tasks)
    holds = columns.largest / report.records_per_s if report.records_per_s else None
    return holds, columns.unit


def _report_of(query: Query) -> KeyReport | None:
    """Return the report on the keys of a query, None if Redis does not respond."""
    try:
        return read_key_report(query)
    except RedisError:
        return None


def _range_of(request: PageRequest, query: Query) -> TimeRange:
    """Return the requested time range; by default that before now, or before the query's end."""
    requested = requested_range(request, default=RANGE)
    if query.ended_at is None or set(RANGE_PARAMETERS) & set(request.GET):
        return requested
    return TimeRange(query.ended_at - RANGES[RANGE], query.ended_at + _AFTER_END, "", requested.now)


def _points(query: Query, time_range: TimeRange) -> list[SkewPoint]:
    """Return the skew over the time range, oldest first."""
    return skew_history(query, time_range.start, time_range.end, now=time_range.now)


def _why_empty(cluster: Cluster, query: Query, report: KeyReport | None) -> str:
    """Return the code of the reason why there is nothing to show, "" if there is something."""
    reasons = {
        "one_task": query.task_count == 1 and query.state in LIVE_STATES,
        "redis_away": report is None,
        "": report is not None and report.sampled_at is not None and bool(report.tasks),
        "not_live": query.state not in LIVE_STATES,
        "pending": query.state == Query.State.PENDING,
        "stopped": cluster.desired != Cluster.Desired.RUNNING,
        "waiting": True,
    }
    return next(reason for reason, holds in reasons.items() if holds)


def _live_context(cluster: Cluster, report: KeyReport) -> dict[str, Any]:
    """Return the context of the status, the tiles, the bars of keys, and the places of keys."""
    columns, limit = columns_of(report.tasks), policy_of(cluster).watch_skew
    bars, status = key_bars(report, columns), status_of(report, columns, limit)
    return {
        "report": report,
        "columns": columns,
        "status": status,
        "window_text": "sampled records of 10 min",
        "tiles": key_tiles(report, columns, status, bars, trend_of(report.history)),
        "age_grade": _age_grade(report),
        "bars": bars,
        "places": place_rows(report, columns),
        "holds": _largest_share(report)[0],
        "most_tasks": max(
            (sum(s > 0 for s in key.tasks.values()) for key in report.keys), default=0
        ),
    }


def _age_grade(report: KeyReport) -> str:
    if report.sampled_at is None:
        return AGE_S.grade(None)
    return AGE_S.grade((datetime.now(UTC) - report.sampled_at).total_seconds())


def _groupings_context(cluster: Cluster, report: KeyReport) -> dict[str, Any]:
    """Return the context of the loads under each grouping."""
    columns, limit = columns_of(report.tasks), policy_of(cluster).watch_skew
    charts = grouping_charts(report, columns, limit)
    return {"report": report, "columns": columns, "charts": charts}


def _history_context(cluster: Cluster, history: Sequence[SkewPoint]) -> dict[str, Any]:
    """Return the context of the table of the history, newest first."""
    limit = policy_of(cluster).watch_skew
    points = history[:: -max(1, -(-len(history) // HISTORY_ROWS))]
    rows = [
        {
            "point": point,
            "grade": imbalance_grade(point.imbalance, limit),
            "title": GROUPINGS[point.grouping].title if point.grouping in GROUPINGS else "",
        }
        for point in points
    ]
    return {"history": rows, "limit": limit}


def _request_context(cluster: Cluster) -> dict[str, Any]:
    """Return the fields of the request of a plan: defaults, and the limit of the policy."""
    adapter = adapters().get(PLANNER)
    if adapter is None:
        return {}
    chosen, limit = adapter.algorithm(""), policy_of(cluster).watch_skew
    given = adapter.watch.parameters("skew", limit) if adapter.watch else {}
    fields = [
        replace(field, default=given.get(field.name, field.default))
        for field in adapter.fields(chosen, cluster)
    ]
    return {"planner": adapter, "algorithm": chosen, "fields": form_fields(fields, {}, {})}
