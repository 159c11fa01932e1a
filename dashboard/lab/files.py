"""Figures and files of a run: CSV and JSON with every row, HTML with the figure."""

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

from django.http import Http404, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe

from algorithms.experiments import Experiment, Table
from controlplane.lab.runs import experiment_by_name, run_by_id
from controlplane.models import LabRun
from dashboard.figures.lab import drawing, lab_figures, panels_of
from dashboard.guards import PageRequest, viewer_page
from dashboard.lab.summary import plain, summary

_CONTENT_TYPES = {"csv": "text/csv", "json": "application/json", "html": "text/html"}


@viewer_page
def charts(request: PageRequest, pk: int) -> JsonResponse:
    """Return the figures of a run, as JSON."""
    run = run_by_id(pk)
    chosen = experiment_by_name(run.planner, run.experiment)
    return JsonResponse({"figures": lab_figures(chosen, _table(run), _measure(request))})


@viewer_page
def download(request: PageRequest, pk: int, kind: str) -> HttpResponse:
    """Return a run as a file: every row as CSV or JSON, or the figure as standalone HTML."""
    run = run_by_id(pk)
    table = _table(run)
    if kind == "csv":
        text = csv_of(table)
    elif kind == "json":
        text = json_of(run.planner, run.experiment, run.parameters, table)
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


def csv_of(table: Table) -> str:
    """Return the rows as CSV with a header."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return written.getvalue()


def json_of(planner: str, name: str, parameters: Mapping[str, Any], table: Table) -> str:
    """Return experiment, parameters and rows as JSON."""
    run = {"planner": planner, "experiment": name, "parameters": dict(parameters)}
    return json.dumps(run | table.to_json(), indent=1, allow_nan=False) + "\n"


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
