"""Pages of the Lab: experiments, and runs with progress and results."""

from collections.abc import Callable
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.utils import timezone

from algorithms.experiments import Experiment, Table
from controlplane import lab
from controlplane.access.roles import require_operator
from controlplane.errors import Busy, Fields, Invalid
from controlplane.isolation.limits import lab_limits
from controlplane.lab.runs import (
    STATES,
    LabFilters,
    QueuePlace,
    all_experiments,
    experiment_by_name,
    experiment_of,
    queue_places,
    run_by_id,
    runs_listing,
)
from controlplane.models import LabRun
from controlplane.planning.estimates import ShownEstimate
from dashboard.figures.lab import panels_of
from dashboard.guards import PageRequest, viewer_action, viewer_page
from dashboard.lab.forms import form_of, run_in, sent_of
from dashboard.lab.summary import plain, summary
from dashboard.lists import list_filters
from dashboard.numbers import duration
from dashboard.responses import notify, notify_refusal, notify_refusals, render_list, render_page

RUNS_PER_PAGE = 15


@viewer_page
def index(request: PageRequest) -> HttpResponse:
    """Show the newest runs and every experiment."""
    filters = list_filters(request, LabFilters, {"per_page": RUNS_PER_PAGE})
    context = _runs(filters) | {"planners": all_experiments(), "states": STATES}
    return render_list(request, "lab.html", "_lab_runs.html", context)


@viewer_page
def experiment(
    request: PageRequest, planner: str, name: str
) -> HttpResponse | HttpResponseRedirect:
    """Render an experiment with its form, which ?run= fills in from a run; or start a run."""
    chosen = experiment_by_name(planner, name)
    if request.method == "POST":
        return _start(request, chosen)
    number = request.GET.get("run", "")
    run = run_by_id(int(number)) if number.isdecimal() else None
    if run is None or (run.planner, run.experiment) != (planner, name):
        return _form(request, chosen, {}, None)
    return _form(request, chosen, sent_of(run), run.series, origin=run)


@viewer_page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """Render a run: its progress, then its chart and table."""
    run = run_by_id(pk)
    place = queue_places().get(run.pk)
    context = _describe(run, place) | _run(run, request.GET.get("measure", ""))
    return render_list(request, "lab_run.html", "_lab_run_body.html", context)


@viewer_action
def cancel(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Cancel a run."""
    return _apply(request, lambda: lab.cancel(request.actor, run_by_id(pk)), "Run cancelled.")


@viewer_action
def again(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Request another run with the same parameters."""
    return _apply(request, lambda: lab.repeat(request.actor, run_by_id(pk)), "", pk)


@viewer_action
def delete(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Delete a run and its table."""
    lab.delete(request.actor, run_by_id(pk))
    notify(request, f"Run {pk} is deleted.")
    return redirect("lab")


def _start(request: PageRequest, chosen: Experiment) -> HttpResponse | HttpResponseRedirect:
    require_operator(request.actor)
    try:
        wanted = run_in(chosen, request.POST)
        run = lab.request(request.actor, chosen.planner, chosen.name, *wanted)
    except Invalid as invalid:
        sent, series = request.POST.dict(), request.POST.getlist("series")
        return _form(request, chosen, sent, series, errors=invalid.fields)
    except Busy as busy:
        notify_refusal(request, busy)
        return redirect("lab-experiment", chosen.planner, chosen.name)
    return redirect("lab-run", run.pk)


def _form(
    request: PageRequest,
    chosen: Experiment,
    sent: dict[str, str],
    series: list[str] | None,
    *,
    errors: Fields | None = None,
    origin: LabRun | None = None,
) -> HttpResponse:
    filters = LabFilters(planner=chosen.planner, experiment=chosen.name, per_page=RUNS_PER_PAGE)
    shown = {
        "experiment": chosen,
        "origin": origin,
        "is_default": not sent,
        "estimate": _estimate(chosen, origin),
    }
    context = shown | form_of(chosen, sent, series, errors or {}) | _runs(filters)
    return render_page(request, "lab_experiment.html", context, 422 if errors else 200)


def _estimate(chosen: Experiment, origin: LabRun | None) -> ShownEstimate | None:
    """Return the estimate of the default parameters, or of those of a run."""
    given = (origin.parameters, origin.values, origin.series) if origin else ({}, None, None)
    try:
        need = lab.estimate(chosen.planner, chosen.name, *given)
    except Invalid:
        return None
    return ShownEstimate.of(need, lab_limits())


def _runs(filters: LabFilters) -> dict[str, Any]:
    page = runs_listing(filters).page
    places = queue_places()
    runs = [_describe(run, places.get(run.pk)) for run in page.rows]
    return {"filters": filters, "page": page, "runs": runs}


def _describe(run: LabRun, place: QueuePlace | None) -> dict[str, Any]:
    chosen = experiment_of(run)
    since, until = run.started_at, run.finished_at or timezone.now()
    return {
        "run": run,
        "place": place,
        "experiment": chosen,
        "title": chosen.title if chosen else run.experiment,
        "percent": round(100 * run.progress),
        "took": duration(until - since) if since else "",
        "swept": [plain(float(value)) for value in run.values],
        "fixed": {name: plain(value) for name, value in run.parameters.items()},
    }


def _run(run: LabRun, measure: str) -> dict[str, Any]:
    """Return the summary of a finished run, with its measures."""
    chosen = experiment_of(run)
    if not run.table or chosen is None:
        return {}
    panels, table = panels_of(chosen, measure), Table.from_json(run.table)
    return {
        "panels": panels,
        "measure": panels[0].y.name,
        "measures": chosen.measures,
        "summaries": [summary(chosen, panel.y, table) for panel in panels],
    }


def _apply(
    request: PageRequest, decide: Callable[[], LabRun], done: str, back: int | None = None
) -> HttpResponseRedirect:
    """Apply a change and redirect to the resulting run, or to `back` with the error."""
    run: LabRun | None = None
    with notify_refusals(request):
        run = decide()
    if run is None:
        return redirect("lab-run", back) if back else redirect("lab")
    if done:
        notify(request, done)
    return redirect("lab-run", run.pk)
