"""Pages of attached jobs: list with set-up instructions, a query with charts, removal."""

from datetime import timedelta
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect
from django.utils import timezone

from controlplane.integrations import attached_jobs
from controlplane.integrations.attached_advice import advice_of
from controlplane.integrations.attached_jobs import lag_of
from controlplane.integrations.attached_list import (
    LOST,
    JobFilters,
    job_by_id,
    jobs_listing,
    progress_of,
    run_by_id,
)
from controlplane.models import AttachedQuery
from dashboard.figures.attached import attached_figures
from dashboard.guards import PageRequest, viewer_action, viewer_page
from dashboard.integrations.tiles import attached_query_tiles
from dashboard.lists import list_filters
from dashboard.responses import notify, render_list
from dashboard.time_range import TimeRange, time_range_of

JOBS_PER_PAGE = 20
# Progress is kept for a day.
RANGES = ("5m", "15m", "30m", "1h", "6h", "24h")
NAME_CHARS = 60
# The default time range of an ended run, and its margin.
LAST = timedelta(hours=1)
MARGIN = timedelta(seconds=5)


@viewer_page
def index(request: PageRequest) -> HttpResponse:
    """Render the attached jobs with instructions to attach another one."""
    filters = list_filters(request, JobFilters, {"per_page": JOBS_PER_PAGE})
    context = {
        "filters": filters,
        "page": jobs_listing(filters).page,
        "site": request.build_absolute_uri("/").rstrip("/"),
    }
    return render_list(request, "attached.html", "_attached_jobs.html", context)


@viewer_page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """Render a query; the browser loads its charts from `charts`."""
    row = run_by_id(pk)
    context = {
        "row": row,
        "query": row.query,
        "job": row.query.job,
        "lost": row.state == LOST,
        "advice": advice_of(row.query),
        "sources": [_source(source) for source in row.query.sources],
        "tiles": attached_query_tiles(row.query, row.state, _behind(row.query)),
        "span": _time_range(request, row.query),
        "ranges": RANGES,
        "has_state": row.query.last.get("state_rows") is not None,
        "has_memory": row.query.last.get("state_bytes") is not None,
        "has_lag": any(lag is not None for lag in row.query.last.get("lags", [])),
    }
    part = "about" if request.GET.get("part") == "about" else "numbers"
    return render_list(request, "attached_query.html", f"_attached_query_{part}.html", context)


@viewer_page
def charts(request: PageRequest, pk: int) -> JsonResponse:
    """Return the figures of the time range, as JSON."""
    query = run_by_id(pk).query
    time_range = _time_range(request, query)
    names = [source_name(source) for source in query.sources]
    progress = progress_of(query, time_range.start, time_range.end)
    return JsonResponse({"figures": attached_figures(progress, names, *time_range.milliseconds)})


@viewer_action
def remove(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Delete a job with its rows."""
    job = job_by_id(pk)
    attached_jobs.remove(request.actor, job)
    notify(request, f"{job.name} was removed. If it still reports, it appears again.")
    return redirect("attached")


def source_name(source: dict[str, Any]) -> str:
    """Return a source's description, short enough for a legend, with the unit of its lag."""
    _, unit = lag_of(source)
    text = str(source["description"])[:NAME_CHARS] or "source"
    return f"{text}, {unit}" if unit else text


def _time_range(request: PageRequest, query: AttachedQuery) -> TimeRange:
    """Return the requested time range, by default the last hour of an ended run."""
    requested = time_range_of(request.GET, timezone.now())
    if not query.over or query.last_progress_at is None or {"range", "from"} & set(request.GET):
        return requested
    end = query.last_progress_at + MARGIN
    return TimeRange(max(query.started_at, end - LAST) - MARGIN, end, "")


def _source(source: dict[str, Any]) -> dict[str, Any]:
    lag, unit = lag_of(source)
    return source | {"lag": lag, "lag_unit": unit}


def _behind(query: AttachedQuery) -> float | None:
    """Return the lag of the watermark behind the start of the newest batch, in ms."""
    watermark = query.last.get("watermark_ms")
    return None if watermark is None else query.last["t"] - watermark
