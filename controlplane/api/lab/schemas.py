"""Schemas of the Lab."""

from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

from algorithms.experiments import Axis, Experiment
from algorithms.vocabulary import ParameterField
from controlplane.api.common.schemas import ListOut


class AxisOut(Schema):
    """A quantity: name is its column in the table."""

    name: str
    label: str
    unit: str
    log: bool

    @staticmethod
    def of(axis: Axis) -> "AxisOut":
        """Return the body of an axis."""
        return AxisOut(name=axis.name, label=axis.label, unit=axis.unit, log=axis.log)


class ParameterOut(Schema):
    """One parameter; type is bool, int, float or str."""

    name: str
    type: str
    default: bool | int | float | str | None
    unit: str
    help: str
    minimum: float | None
    maximum: float | None
    choices: list[str]
    optional: bool

    @staticmethod
    def of(field: ParameterField) -> "ParameterOut":
        """Return the body of a parameter."""
        return ParameterOut(
            name=field.name,
            type=field.type.__name__,
            default=field.default,
            unit=field.unit,
            help=field.help,
            minimum=field.minimum,
            maximum=field.maximum,
            choices=list(field.choices),
            optional=field.optional,
        )


class ExperimentOut(Schema):
    """An experiment: x is what is swept, over `values` by default; y is what is drawn over it."""

    planner: str
    name: str
    title: str
    about: str
    x: AxisOut
    y: list[AxisOut]
    parameters: list[ParameterOut]
    values: list[float]
    series: list[str]
    choices: list[str]
    columns: list[str]

    @staticmethod
    def of(experiment: Experiment) -> "ExperimentOut":
        """Return the body of an experiment; the swept parameter is x."""
        fields = [
            field for field in experiment.parameters.fields() if field.name != experiment.x.name
        ]
        return ExperimentOut(
            planner=experiment.planner,
            name=experiment.name,
            title=experiment.title,
            about=experiment.about,
            x=AxisOut.of(experiment.x),
            y=[AxisOut.of(panel.y) for panel in experiment.panels],
            parameters=[ParameterOut.of(field) for field in fields],
            values=list(experiment.values),
            series=list(experiment.series),
            choices=list(experiment.choices),
            columns=list(experiment.columns),
        )


class RunIn(Schema):
    """An experiment and its parameters; missing values have the experiment's defaults."""

    planner: str = "placement"
    experiment: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    values: list[float] | None = None
    series: list[str] | None = None


class RunOut(Schema):
    """A run without its table; state is queued, running, done, failed or cancelled."""

    id: int
    planner: str
    experiment: str
    parameters: dict[str, Any]
    values: list[float]
    series: list[str]
    state: str
    progress: float
    requested_by: str
    requested_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: str


class RunPage(ListOut):
    """One page of runs."""

    runs: list[RunOut]


class TableOut(Schema):
    """A table in long form: one row per (x, series, seed)."""

    columns: list[str]
    rows: list[list[Any]]
