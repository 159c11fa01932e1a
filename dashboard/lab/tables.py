"""Figures and files of a run."""

from django.http import Http404, HttpResponse, JsonResponse

from algorithms.experiments import Table
from controlplane.lab.runs import experiment_by_name, run_by_id
from controlplane.models import LabRun
from dashboard.figures.lab import lab_figures
from dashboard.guards import PageRequest, viewer_page
from dashboard.lab.files import csv_of, html_of, json_of

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
