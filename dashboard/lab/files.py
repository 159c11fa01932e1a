"""Files and figures of runs and stored results: rows as CSV or JSON, figures as SVG or HTML."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import mark_safe

from algorithms.lab.experiments import Experiment, Table
from algorithms.lab.references import reference_of
from controlplane.errors import Conflict
from controlplane.lab.comparison import compare
from controlplane.lab.files import csv_of, json_of, panels_of, svg_of
from controlplane.lab.outcomes import outcomes_of
from controlplane.lab.runs import experiment_by_name, run_by_id
from controlplane.models import LabRun
from dashboard.guards import PageRequest, viewer_page
from dashboard.lab.figures import comparison_figure, drawing, lab_figures
from dashboard.lab.headlines import experiment_headline
from dashboard.lab.results import RUN_PARAMETERS, titled_values
from dashboard.lab.summary import summary
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
    result = _Result(run.planner, run.experiment, run.parameters, _table(run))
    return _file(result, kind, _measure(request), f"run-{run.pk}")


@viewer_page
def stored_charts(request: PageRequest, planner: str, name: str) -> JsonResponse:
    """Return the figures of the stored result of an experiment with its finding, as JSON."""
    require_known(request, frozenset())
    result, chosen = _stored(planner, name), experiment_by_name(planner, name)
    outcomes = outcomes_of(chosen, result.table, result.parameters)
    finding = experiment_headline(chosen, outcomes, None, timezone.now()).what
    figures = lab_figures(chosen, result.table)
    for drawn in figures.values():
        drawn["layout"]["meta"] = {"finding": finding}
    return JsonResponse({"figures": figures})


@viewer_page
def stored_download(request: PageRequest, planner: str, name: str, kind: str) -> HttpResponse:
    """Return the stored result of an experiment as a file, as `download` does for a run."""
    require_known(request, frozenset())
    return _file(_stored(planner, name), kind, "", "stored")


@dataclass(frozen=True)
class _Result:
    """A table with what produced it; runs of removed experiments have no more than that."""

    planner: str
    name: str
    parameters: Mapping[str, Any]
    table: Table


def _stored(planner: str, name: str) -> _Result:
    """Return the stored result; raises `Http404` without one."""
    reference = reference_of(experiment_by_name(planner, name))
    if reference is None:
        raise Http404(f"{planner} {name} has no stored result")
    return _Result(planner, name, reference.parameters, reference.table)


def _file(result: _Result, kind: str, measure: str, source: str) -> HttpResponse:
    """Return the response that downloads a result; `source`: the last part of the file's name."""
    planner, name, parameters, table = result.planner, result.name, result.parameters, result.table
    if kind == "csv":
        text = csv_of(table)
    elif kind == "json":
        text = json_of(planner, name, parameters, table)
    elif kind == "svg":
        text = svg_of(experiment_by_name(planner, name), parameters, table, measure)
    else:
        text = html_of(experiment_by_name(planner, name), parameters, table, measure)
    headers = {"Content-Disposition": f'attachment; filename="{planner}-{name}-{source}.{kind}"'}
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
        "parameters": titled_values(parameters, experiment),
        "drawings": drawings,
        "summaries": summaries,
    }
    return render_to_string("dashboard/lab_file.html", context)
