"""Endpoints of the Lab: experiments, runs and tables."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router, Schema, Status
from pydantic import Field

from algorithms.estimates import Estimate
from algorithms.lab.claims import Claim, Decided
from algorithms.lab.experiments import Axis, Experiment, Table
from algorithms.vocabulary import ParameterField
from controlplane import lab
from controlplane.access.roles import Actor
from controlplane.api.common.lists import list_parameters, listed
from controlplane.api.common.parameters import EstimateOut, ParameterOut
from controlplane.api.common.schemas import RequestBody, columns_of, fields_of, list_of, shown
from controlplane.api.common.security import caller, open_to
from controlplane.clusters.audiences import members
from controlplane.errors import Conflict
from controlplane.lab.comparison import ComparedPoint, ParameterDifference, RunComparison, compare
from controlplane.lab.files import csv_of, json_of, svg_of
from controlplane.lab.outcomes import outcomes_of
from controlplane.lab.requests import MAX_VALUES
from controlplane.lab.runs import (
    LabFilters,
    QueuePlace,
    all_experiments,
    experiment_by_name,
    planner_of,
    queue_places,
    run_by_id,
    runs_listing,
)
from controlplane.lab.sharing import MAX_NAME
from controlplane.lab.time_estimates import TimeEstimate, remaining_s
from controlplane.models import LabRun
from controlplane.planning.estimates import ShownEstimate
from controlplane.processes.isolation.limits import lab_limits


class ClaimOut(fields_of(Claim, without="check entry")):  # type: ignore[misc]
    """A claim of a paper in Weir's words; source: its figure or section."""


class ExperimentOut(
    fields_of(Experiment, without="panels parameters measures axes trial claims claim_scale")  # type: ignore[misc]
):
    """An experiment: x is what is swept, over `values` by default; y is what is drawn over it."""

    planner: str
    y: list[Axis]
    parameters: list[ParameterOut]
    columns: Sequence[str]
    claims: list[ClaimOut]

    @staticmethod
    def resolve_planner(experiment: Experiment) -> str:
        """Return the name of the planner that has the experiment."""
        return planner_of(experiment)

    @staticmethod
    def resolve_y(experiment: Experiment) -> list[Axis]:
        """Return what is drawn, by panel."""
        return [panel.y for panel in experiment.panels]

    @staticmethod
    def resolve_parameters(experiment: Experiment) -> list[ParameterField]:
        """Return the parameters without the swept one, which is x."""
        fields = experiment.parameters.fields()
        return [field for field in fields if field.name != experiment.x.name]


class PointsIn(RequestBody):
    """An experiment and its parameters; missing values have the experiment's defaults.

    master: the Spark master that computes the points, such as local[2]; empty for the Lab's worker.
    """

    planner: str = Field("placement", max_length=30)
    experiment: str = Field(max_length=60)
    parameters: dict[str, Any] = Field(default_factory=dict, max_length=100)
    values: list[float] | None = Field(None, max_length=MAX_VALUES)
    series: list[str] | None = Field(None, max_length=MAX_VALUES)
    master: str = Field("", max_length=250)


class RunIn(PointsIn):
    """A requested run: its points, a name, and who sees it."""

    name: str = Field("", max_length=MAX_NAME)
    visibility: Literal["everyone", "owner"] = "everyone"


class RunChangeIn(RequestBody):
    """Changes of a run; missing values stay. visibility owner hides it from others than admins."""

    name: str | None = Field(None, max_length=MAX_NAME)
    visibility: Literal["everyone", "owner"] | None = None


class LabRunOut(
    columns_of(  # type: ignore[misc]
        LabRun,
        "id planner experiment state progress requested_by requested_at started_at finished_at"
        " error error_code name visibility master",
        parameters=dict[str, Any],
        values=list[float],
        series=list[str],
        estimate=dict[str, Any],
        timings=dict[str, float],
    )
):
    """A run without its table; state is queued, running, done, failed or cancelled.

    estimate: bytes and seconds (upper bounds), and the expected time with its range, as estimated
    at the request. timings: seconds by series. remaining_s: the estimated seconds that a running
    run still needs. error_code: why it failed, such as out_of_memory.
    """

    model_config = shown("id planner experiment name state progress requested_by requested_at")

    remaining_s: float | None

    @staticmethod
    def resolve_remaining_s(run: LabRun) -> float | None:
        """Return the estimated rest of a running run in seconds."""
        rest = remaining_s(run, timezone.now())
        return None if rest is None else round(rest, 1)


class RunEstimateOut(EstimateOut):
    """Upper bounds of memory and time with their limits, and the expected time with its range.

    runs: the finished runs that the range is based on; basis: experiment, planner or model.
    """

    expected_s: float | None
    low_s: float
    high_s: float
    runs: int
    basis: str


class LabPlaceOut(fields_of(QueuePlace)):  # type: ignore[misc]
    """A run in the queue; position is 0 while it is executed."""


RunPage = list_of("RunPage", runs=LabRunOut)


class TableOut(Schema):
    """A table in long form: one row per (x, series, seed); complete: the run is done."""

    columns: list[str]
    rows: list[list[Any]]
    complete: bool


class ClaimOutcomeOut(ClaimOut):
    """A claim with its outcome on a run: holds, does not hold, or not testable."""

    outcome: str
    evidence: str

    @staticmethod
    def of(item: Decided) -> dict[str, Any]:
        """Return the fields of a decided claim."""
        claim, finding = item.claim, item.finding
        return {
            "source": claim.source, "text": claim.text, "outcome": finding.outcome.value,
            "evidence": finding.evidence,
        }  # fmt: skip


class RunDifferenceOut(fields_of(ParameterDifference, without="this other")):  # type: ignore[misc]
    """A parameter that differs between two runs."""

    this: Any
    other: Any


class ComparedPointOut(fields_of(ComparedPoint)):  # type: ignore[misc]
    """The means of two runs at one x; ratio: this over the other."""


class RunComparisonOut(
    fields_of(RunComparison, without="differences points")  # type: ignore[misc]
):
    """Two runs of one experiment: what differs, and one over the other by x and series."""

    differences: list[RunDifferenceOut]
    points: list[ComparedPointOut]


router = Router(tags=["lab"])


@router.get("/experiments", response=list[ExperimentOut])
def list_experiments(request: HttpRequest, planner: str = "") -> Any:
    """Return every experiment, or those of one planner, with parameters, values and series."""
    return [
        experiment
        for name, experiments in all_experiments().items()
        if planner in ("", name)
        for experiment in experiments
    ]


@router.get("/experiments/{planner}/{name}", response=ExperimentOut)
def get_experiment(request: HttpRequest, planner: str, name: str) -> Any:
    """Return one experiment."""
    return experiment_by_name(planner, name)


@router.post("/runs", response={202: LabRunOut})
def request_run(request: HttpRequest, body: RunIn) -> Any:
    """Request a run, which is queued for the Lab's worker."""
    options = lab.RunOptions(body.name, body.visibility, body.master)
    run = lab.request(
        caller(request), body.planner, body.experiment, body.parameters, body.values, body.series,
        options,
    )  # fmt: skip
    return Status(202, run)


@router.post("/estimate", response=RunEstimateOut, auth=open_to(members))
def estimate_run(request: HttpRequest, body: PointsIn) -> Any:
    """Estimate the memory and time of a run without requesting it; 422 too_expensive beyond."""
    need = lab.estimate(
        body.planner, body.experiment, body.parameters, body.values, body.series, body.master
    )
    return _shown(need.bound, need.time)


@router.get("/queue", response=list[LabPlaceOut])
def list_queue(request: HttpRequest) -> Any:
    """Return the runs that are executed or wait, in their order, with their estimated start."""
    return list(queue_places().values())


@router.get("/runs", response=RunPage, openapi_extra=list_parameters(LabFilters))
def list_runs(request: HttpRequest, response: HttpResponse) -> Any:
    """List runs, newest first.

    Query parameters planner, experiment, state, q (words of the name), cursor, limit (up to 1000).
    """
    listing = runs_listing(LabFilters.of(request.GET), caller(request))
    return listed(request, response, listing, "runs")


@router.get("/runs/{int:pk}", response=LabRunOut)
def get_run(request: HttpRequest, pk: int) -> Any:
    """Return one run without its table."""
    return run_by_id(pk, caller(request))


@router.get("/runs/{int:pk}/table", response=TableOut)
def get_table(request: HttpRequest, pk: int) -> Any:
    """Return the table of a run; while it is running, the rows that have been computed."""
    run = _tabled(caller(request), pk)
    return run.table | {"complete": run.state == LabRun.State.DONE}


@router.get("/runs/{int:pk}/claims", response=list[ClaimOutcomeOut])
def get_claims(request: HttpRequest, pk: int) -> Any:
    """Return the claims of the paper about the figure, each with its outcome on the run's table."""
    run = _tabled(caller(request), pk)
    chosen = experiment_by_name(run.planner, run.experiment)
    outcomes = outcomes_of(chosen, Table.from_json(run.table), run.parameters)
    return [ClaimOutcomeOut.of(item) for item in outcomes.decided]


@router.get("/runs/{int:pk}/comparison", response=RunComparisonOut)
def compare_runs(request: HttpRequest, pk: int, other: int, measure: str = "") -> Any:
    """Compare a run with another one of the same experiment, by one measure."""
    actor = caller(request)
    run, with_run = run_by_id(pk, actor), run_by_id(other, actor)
    return compare(experiment_by_name(run.planner, run.experiment), run, with_run, measure)


_TEXT: dict[str, Any] = {"schema": {"type": "string"}}
_FILES = {"csv": "text/csv", "json": "application/json", "svg": "image/svg+xml"}


@router.get(
    "/runs/{int:pk}/export",
    openapi_extra={"responses": {200: {"content": dict.fromkeys(_FILES.values(), _TEXT)}}},
)
def export_run(
    request: HttpRequest,
    pk: int,
    format: Literal["csv", "json", "svg"] = "csv",  # noqa: A002 - its name in the query string
    measure: str = "",
) -> HttpResponse:
    """Return a run as a file: every row as CSV or JSON, or the figure of a measure as SVG."""
    run = _tabled(caller(request), pk)
    table = Table.from_json(run.table)
    if format == "csv":
        text = csv_of(table)
    elif format == "json":
        text = json_of(run.planner, run.experiment, run.parameters, table)
    else:
        chosen = experiment_by_name(run.planner, run.experiment)
        text = svg_of(chosen, run.parameters, table, measure)
    return HttpResponse(text, content_type=f"{_FILES[format]}; charset=utf-8")


@router.patch("/runs/{int:pk}", response=LabRunOut)
def change_run(request: HttpRequest, pk: int, body: RunChangeIn) -> Any:
    """Change the name of a run, or who sees it."""
    actor = caller(request)
    return lab.change(actor, run_by_id(pk, actor), body.name, body.visibility)


@router.post("/runs/{int:pk}/cancel", response=LabRunOut)
def cancel_run(request: HttpRequest, pk: int) -> Any:
    """Cancel a queued or running run."""
    actor = caller(request)
    return lab.cancel(actor, run_by_id(pk, actor))


@router.post("/runs/{int:pk}/again", response={202: LabRunOut})
def run_again(request: HttpRequest, pk: int) -> Any:
    """Request another run with the same parameters."""
    actor = caller(request)
    return Status(202, lab.repeat(actor, run_by_id(pk, actor)))


@router.delete("/runs/{int:pk}", response={204: None})
def delete_run(request: HttpRequest, pk: int) -> Any:
    """Delete a run and its table; a running run stops."""
    actor = caller(request)
    lab.delete(actor, run_by_id(pk, actor))
    return Status(204, None)


def _tabled(actor: Actor, pk: int) -> LabRun:
    """Return a run that has rows. Raises `NotFound`, `Conflict` no_table."""
    run = run_by_id(pk, actor)
    if not run.table:
        raise Conflict("no_table", f"The run is {run.state}", {"state": run.state})
    return run


def _shown(bound: Estimate, time: TimeEstimate) -> dict[str, Any]:
    return asdict(ShownEstimate.of(bound, lab_limits())) | time.to_json()


# What the API adds, by path.
ROUTERS = (("/lab", router),)
