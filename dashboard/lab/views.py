"""Pages of the Lab: experiments, and runs with progress and results."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.utils import timezone

from algorithms.lab.experiments import Experiment
from controlplane import lab
from controlplane.access.roles import Actor, require_operator
from controlplane.errors import Busy, Fields, Invalid
from controlplane.lab.catalog import catalog, figure_of, newest_result
from controlplane.lab.requests import Need
from controlplane.lab.runs import (
    STATES,
    LabFilters,
    QueuePlace,
    experiment_by_name,
    experiment_of,
    newest_done,
    queue_places,
    run_by_id,
    runs_listing,
)
from controlplane.models import LabRun
from controlplane.processes.isolation.limits import lab_limits
from controlplane.wire.network.destinations import masters
from dashboard.guards import PageRequest, viewer_action, viewer_page
from dashboard.lab.forms import form_of, run_in, sent_of
from dashboard.lab.headlines import catalog_headline
from dashboard.lab.results import RUN_PARAMETERS, result_context, run_context, titled_faults
from dashboard.lab.run_page import STATE_GRADES, STATE_WORDS, rest_of, took_of
from dashboard.lists import list_filters, require_known
from dashboard.responses import notify, notify_refusal, notify_refusals, render_list, render_page

RUNS_PER_PAGE = 15
# The local masters of Spark that a form offers; the API accepts every allowed one.
_LOCAL_MASTERS = ("local[2]", "local[4]", "local[*]")


@viewer_page
def index(request: PageRequest) -> HttpResponse:
    """Show the experiments by paper and figure, and the newest runs."""
    if request.htmx and request.htmx.target == "experiments":
        return render_page(request, "_lab_catalog.html", _catalog(request))
    # The search of the page is for experiments.
    filters = replace(list_filters(request, LabFilters, {"per_page": RUNS_PER_PAGE}), q="")
    context = _runs(filters, request.actor) | {"states": STATES}
    if not request.htmx:
        context |= _catalog(request)
        context["headline"] = catalog_headline(context["papers"], len(queue_places()))
    return render_list(request, "lab.html", "_lab_runs.html", context)


@viewer_page
def experiment(
    request: PageRequest, planner: str, name: str
) -> HttpResponse | HttpResponseRedirect:
    """Render an experiment with its form, which ?run= fills in from a run; or start a run."""
    chosen = experiment_by_name(planner, name)
    if request.method == "POST":
        return _start(request, chosen)
    require_known(request, {"run"})
    number = request.GET.get("run", "")
    run = run_by_id(int(number), request.actor) if number.isdecimal() else None
    if run is None or (run.planner, run.experiment) != (planner, name):
        return _form(request, chosen, {}, None)
    return _form(request, chosen, sent_of(run), run.series, origin=run)


@viewer_page
def estimate(request: PageRequest, planner: str, name: str) -> HttpResponse:
    """Return the estimated time and memory of the run that a form describes, as a fragment."""
    chosen = experiment_by_name(planner, name)
    try:
        wanted = run_in(chosen, request.GET)
        need = lab.estimate(planner, name, *wanted, master=request.GET.get("master", ""))
    except Invalid as invalid:
        return render_page(
            request, "_lab_estimate.html", {"faults": titled_faults(chosen, invalid.fields)}
        )
    return render_page(request, "_lab_estimate.html", _shown(need))


@viewer_page
def detail(request: PageRequest, pk: int) -> HttpResponse:
    """Render a run: its progress, its chart with the claims, its table, and a comparison."""
    require_known(request, RUN_PARAMETERS)
    run = run_by_id(pk, request.actor)
    place = queue_places().get(run.pk)
    context = _describe(run, place) | run_context(run, request.GET, request.actor, place)
    if not request.htmx:
        return render_page(request, "lab_run.html", context)
    response = render_page(request, "_lab_run_live.html", context)
    # A finished run has parts that its page lacks; until then its charts read the new points.
    response["HX-Trigger" if run.under_way else "HX-Refresh"] = (
        "weir:points" if run.under_way else "true"
    )
    return response


@viewer_action
def change(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Change the name of a run, or who sees it."""
    given = {name: request.POST.get(name) for name in ("name", "visibility")}
    return _apply(
        request,
        lambda: lab.change(request.actor, run_by_id(pk, request.actor), **given),
        "Run changed.",
        pk,
    )


@viewer_action
def cancel(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Cancel a run."""
    actor = request.actor
    return _apply(request, lambda: lab.cancel(actor, run_by_id(pk, actor)), "Run cancelled.")


@viewer_action
def again(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Request another run with the same parameters."""
    actor = request.actor
    return _apply(request, lambda: lab.repeat(actor, run_by_id(pk, actor)), "", pk)


@viewer_action
def delete(request: PageRequest, pk: int) -> HttpResponseRedirect:
    """Delete a run and its table."""
    lab.delete(request.actor, run_by_id(pk, request.actor))
    notify(request, f"Run {pk} is deleted.")
    return redirect("lab")


def _start(request: PageRequest, chosen: Experiment) -> HttpResponse | HttpResponseRedirect:
    require_operator(request.actor)
    sent = request.POST
    options = lab.RunOptions(
        sent.get("name", "").strip(), sent.get("visibility", "everyone"), sent.get("master", "")
    )
    try:
        wanted = run_in(chosen, sent)
        run = lab.request(request.actor, chosen.planner, chosen.name, *wanted, options=options)
    except Invalid as invalid:
        return _form(request, chosen, sent.dict(), sent.getlist("series"), errors=invalid.fields)
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
    newest = newest_done(request.actor).get((chosen.planner, chosen.name))
    shown = (
        {
            "experiment": chosen,
            "figure": figure_of(chosen),
            "origin": origin,
            "is_default": not sent,
            "masters": (*_LOCAL_MASTERS, *masters()),
            "sent": sent,
        }
        | result_context(chosen, newest, newest_result(chosen, newest))
        | _estimate(chosen, origin)
    )
    context = shown | form_of(chosen, sent, series, errors or {}) | _runs(filters, request.actor)
    return render_page(request, "lab_experiment.html", context, 422 if errors else 200)


def _estimate(chosen: Experiment, origin: LabRun | None) -> dict[str, Any]:
    """Return the estimate of the default parameters, or of those of a run."""
    try:
        if origin is None:
            need = lab.estimate(chosen.planner, chosen.name)
        else:
            need = lab.estimate(
                chosen.planner, chosen.name, origin.parameters, origin.values, origin.series,
                origin.master,
            )  # fmt: skip
    except Invalid:
        return {}
    return _shown(need)


def _shown(need: Need) -> dict[str, Any]:
    return {"bound": need.bound, "time": need.time, "limits": lab_limits()}


def _catalog(request: PageRequest) -> dict[str, Any]:
    words = request.GET.get("q", "").strip()[:100]
    papers = catalog(request.actor, words)
    return {"papers": papers, "words": words}


def _runs(filters: LabFilters, actor: Actor) -> dict[str, Any]:
    page = runs_listing(filters, actor).page
    places = queue_places()
    runs = [_describe(run, places.get(run.pk)) for run in page.rows]
    return {"filters": filters, "page": page, "runs": runs}


def _describe(run: LabRun, place: QueuePlace | None) -> dict[str, Any]:
    chosen, now = experiment_of(run), timezone.now()
    return {
        "run": run,
        "place": place,
        "experiment": chosen,
        "title": chosen.title if chosen else run.experiment,
        "percent": round(100 * run.progress),
        "took": took_of(run, now),
        "rest": rest_of(run, now),
        "state_word": STATE_WORDS.get(run.state, run.state),
        "state_grade": STATE_GRADES.get(run.state, ""),
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
