"""Endpoints of the Lab: experiments, runs and tables."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema, Status
from pydantic import Field

from algorithms.experiments import Axis, Experiment
from algorithms.vocabulary import ParameterField
from controlplane import lab
from controlplane.api.common.lists import list_parameters, listed, requested_page
from controlplane.api.common.schemas import ListOut, RequestBody, columns_of, fields_of
from controlplane.api.common.security import caller
from controlplane.errors import Conflict
from controlplane.isolation.limits import lab_limits
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
from controlplane.models import LabRun
from controlplane.planning.estimates import ShownEstimate


class ParameterOut(fields_of(ParameterField, without="type")):  # type: ignore[misc]
    """One parameter; type is bool, int, float or str."""

    type: str

    @staticmethod
    def resolve_type(field: ParameterField) -> str:
        """Return the name of the type."""
        return field.type.__name__


class ExperimentOut(fields_of(Experiment, without="panels parameters measures trial")):  # type: ignore[misc]
    """An experiment: x is what is swept, over `values` by default; y is what is drawn over it."""

    planner: str
    y: list[Axis]
    parameters: list[ParameterOut]
    columns: Sequence[str]

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


class RunIn(RequestBody):
    """An experiment and its parameters; missing values have the experiment's defaults."""

    planner: str = Field("placement", max_length=30)
    experiment: str = Field(max_length=60)
    parameters: dict[str, Any] = Field(default_factory=dict, max_length=100)
    values: list[float] | None = Field(None, max_length=MAX_VALUES)
    series: list[str] | None = Field(None, max_length=MAX_VALUES)


class LabRunOut(
    columns_of(  # type: ignore[misc]
        LabRun,
        "id planner experiment state progress requested_by requested_at started_at finished_at"
        " error error_code",
        parameters=dict[str, Any],
        values=list[float],
        series=list[str],
        estimate=dict[str, float],
    )
):
    """A run without its table; state is queued, running, done, failed or cancelled.

    estimate: bytes and seconds, as estimated at the request. error_code: why it failed, such as
    out_of_memory.
    """


class EstimateOut(fields_of(ShownEstimate)):  # type: ignore[misc]
    """Estimated memory and time of a computation with their limits, in bytes and seconds."""


class LabPlaceOut(fields_of(QueuePlace)):  # type: ignore[misc]
    """A run in the queue; position is 0 while it is executed."""


class RunPage(ListOut):
    """One page of runs."""

    runs: list[LabRunOut]


class TableOut(Schema):
    """A table in long form: one row per (x, series, seed)."""

    columns: list[str]
    rows: list[list[Any]]


router = Router(tags=["lab"])


@router.get("/experiments", response=list[ExperimentOut])
def list_experiments(request: HttpRequest, planner: str = "") -> Any:
    """Return every experiment, or those of one planner, with parameters, values and series."""
    caller(request)
    return [
        experiment
        for name, experiments in all_experiments().items()
        if planner in ("", name)
        for experiment in experiments
    ]


@router.get("/experiments/{planner}/{name}", response=ExperimentOut)
def get_experiment(request: HttpRequest, planner: str, name: str) -> Any:
    """Return one experiment."""
    caller(request)
    return experiment_by_name(planner, name)


@router.post("/runs", response={202: LabRunOut})
def request_run(request: HttpRequest, body: RunIn) -> Any:
    """Request a run, which is queued for the Lab's worker."""
    run = lab.request(
        caller(request), body.planner, body.experiment, body.parameters, body.values, body.series
    )
    return Status(202, run)


@router.post("/estimate", response=EstimateOut)
def estimate_run(request: HttpRequest, body: RunIn) -> Any:
    """Estimate the memory and time of a run without requesting it; 422 too_expensive beyond."""
    caller(request)
    need = lab.estimate(body.planner, body.experiment, body.parameters, body.values, body.series)
    return ShownEstimate.of(need, lab_limits())


@router.get("/queue", response=list[LabPlaceOut])
def list_queue(request: HttpRequest) -> Any:
    """Return the runs that are executed or wait, in their order, with their estimated start."""
    caller(request)
    return list(queue_places().values())


@router.get("/runs", response=RunPage, openapi_extra=list_parameters(LabFilters))
def list_runs(request: HttpRequest, response: HttpResponse) -> Any:
    """List runs, newest first.

    Query parameters planner, experiment, state, cursor, limit (up to 1000).
    """
    caller(request)
    page = requested_page(request, runs_listing(LabFilters.of(request.GET)))
    return listed(request, response, page) | {"runs": list(page.rows)}


@router.get("/runs/{int:pk}", response=LabRunOut)
def get_run(request: HttpRequest, pk: int) -> Any:
    """Return one run without its table."""
    caller(request)
    return run_by_id(pk)


@router.get("/runs/{int:pk}/table", response=TableOut)
def get_table(request: HttpRequest, pk: int) -> Any:
    """Return the table of a run that is done: one row per (x, series, seed)."""
    caller(request)
    run = run_by_id(pk)
    if not run.table:
        raise Conflict("no_table", f"The run is {run.state}", {"state": run.state})
    return run.table


@router.post("/runs/{int:pk}/cancel", response=LabRunOut)
def cancel_run(request: HttpRequest, pk: int) -> Any:
    """Cancel a queued or running run."""
    return lab.cancel(caller(request), run_by_id(pk))


@router.post("/runs/{int:pk}/again", response={202: LabRunOut})
def run_again(request: HttpRequest, pk: int) -> Any:
    """Request another run with the same parameters."""
    return Status(202, lab.repeat(caller(request), run_by_id(pk)))


@router.delete("/runs/{int:pk}", response={204: None})
def delete_run(request: HttpRequest, pk: int) -> Any:
    """Delete a run and its table; a running run stops."""
    lab.delete(caller(request), run_by_id(pk))
    return Status(204, None)
