"""Figures and files of a run: CSV and JSON with every row, the figure as SVG or HTML."""

from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe

from algorithms.experiments import Experiment, Table
from controlplane.errors import Conflict
from controlplane.lab.comparison import compare
from controlplane.lab.files import csv_of, json_of, panels_of, svg_of
from controlplane.lab.runs import experiment_by_name, run_by_id
from controlplane.models import LabRun
from dashboard.figures.lab import comparison_figure, drawing, lab_figures
from dashboard.guards import PageRequest, viewer_page
from dashboard.lab.results import RUN_PARAMETERS
from dashboard.lab.summary import plain, summary
from dashboard.lists import require_known

_CONTENT_TYPES = {
    "csv": "text/csv", "json": "application/json", "html": "text/html", "svg": "image/svg+xml",
}  # fmt: skip


@viewer_page
def charts(request: PageRequest, pk: int) -> JsonResponse:
    """Return the figures of a run, as JSON; none before its first point."""
    require_known(request, RUN_PARAMETERS)
    run = run_by_id(pk, request.actor)
    if run.under_way and not run.table:
        return JsonResponse({"figures": {}})
    chosen = experiment_by_name(run.planner, run.experiment)
    return JsonResponse({"figures": lab_figures(chosen, _table(run), _measure(request))})


@viewer_page
def comparison_chart(request: PageRequest, pk: int) -> JsonResponse:
    """Return the figure of two runs, as JSON: `with` is the other one, `how` ratio or overlay."""
    require_known(request, RUN_PARAMETERS)
    number = request.GET.get("with", "")
    if not number.isdecimal():
        raise Http404("Name the other run")
    run, other = run_by_id(pk, request.actor), run_by_id(int(number), request.actor)
    chosen = experiment_by_name(run.planner, run.experiment)
    try:
        compared = compare(chosen, run, other, _measure(request))
    except Conflict as refused:
        raise Http404(str(refused)) from None
    divided = request.GET.get("how") != "overlay"
    drawn = comparison_figure(chosen, compared, (run.title, other.title), divided=divided)
    return JsonResponse({"figures": {"comparison": drawn}})


@viewer_page
def download(request: PageRequest, pk: int, kind: str) -> HttpResponse:
    """Return a run as a file: every row as CSV or JSON, or the figure as SVG or HTML."""
    require_known(request, RUN_PARAMETERS)
    run = run_by_id(pk, request.actor)
    table = _table(run)
    if kind == "csv":
        text = csv_of(table)
    elif kind == "json":
        text = json_of(run.planner, run.experiment, run.parameters, table)
    elif kind == "svg":
        chosen = experiment_by_name(run.planner, run.experiment)
        text = svg_of(chosen, run.parameters, table, _measure(request))
    else:
        chosen = experiment_by_name(run.planner, run.experiment)
        text = html_of(chosen, run.parameters, table, _measure(request))
    name = f"{run.planner}-{run.experiment}-run-{run.pk}.{kind}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    content_type = f"{_CONTENT_TYPES[kind]}; charset=utf-8"
    return HttpResponse(text, content_type=content_type, headers=headers)


def _measure(request: PageRequest) -> str:
    return request.GET.get("measure", "")


def _table(run: LabRun) -> Table:
    if not run.table:
        raise Http404(f"Run {run.pk} has no table")
    return Table.from_json(run.table)


def html_of(
    experiment: Experiment, parameters: Mapping[str, Any], table: Table, measure: str = ""
) -> str:
    """Return a standalone page with figures, parameters and the summary table."""
    figures = lab_figures(experiment, table, measure)
    drawings = [
        # Plotly's HTML, which escapes its data.
        mark_safe(drawing(figure, name, with_plotly=place == 0))  # noqa: S308
        for place, (name, figure) in enumerate(figures.items())
    ]
    summaries = [summary(experiment, p.y, table) for p in panels_of(experiment, measure)]
    context = {
        "experiment": experiment,
        "parameters": {name: plain(value) for name, value in parameters.items()},
        "drawings": drawings,
        "summaries": summaries,
    }
    return render_to_string("dashboard/lab_file.html", context)
