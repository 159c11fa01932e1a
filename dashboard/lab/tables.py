"""Figures and files of a run."""

from django.http import Http404, HttpResponse, JsonResponse

from algorithms.experiments import Table
from controlplane.lab.runs import experiment_by_name, run_by_id
from controlplane.models import LabRun
from dashboard.figures.lab import lab_figures
from dashboard.guards import PageRequest, viewer_page
from dashboard.lab.files import csv_of, html_of, json_of


@viewer_page
def charts(request: PageRequest, pk: int) -> JsonResponse:
    """Return the figures of a run, as JSON."""
    run = run_by_id(pk)
    chosen = experiment_by_name(run.planner, run.experiment)
    return JsonResponse({"figures": lab_figures(chosen, _table(run), _measure(request))})


@viewer_page
def table_csv(request: PageRequest, pk: int) -> HttpResponse:
    """Return every row as a file."""
    run = run_by_id(pk)
    return _file(run, csv_of(_table(run)), "csv", "text/csv; charset=utf-8")


@viewer_page
def table_json(request: PageRequest, pk: int) -> HttpResponse:
    """Return experiment, parameters and every row as a file."""
    run = run_by_id(pk)
    text = json_of(run.planner, run.experiment, run.parameters, _table(run))
    return _file(run, text, "json", "application/json")


@viewer_page
def figure_html(request: PageRequest, pk: int) -> HttpResponse:
    """Return a standalone HTML file with the figure."""
    run = run_by_id(pk)
    chosen = experiment_by_name(run.planner, run.experiment)
    text = html_of(chosen, run.parameters, _table(run), _measure(request))
    return _file(run, text, "html", "text/html; charset=utf-8")


def _measure(request: PageRequest) -> str:
    return request.GET.get("measure", "")


def _table(run: LabRun) -> Table:
    if not run.table:
        raise Http404(f"Run {run.pk} has no table")
    return Table.from_json(run.table)


def _file(run: LabRun, text: str, kind: str, content_type: str) -> HttpResponse:
    answer = HttpResponse(text, content_type=content_type)
    name = f"{run.planner}-{run.experiment}-run-{run.pk}.{kind}"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
