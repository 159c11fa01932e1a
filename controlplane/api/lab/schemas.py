"""Schemas of the Lab."""

from collections.abc import Sequence
from typing import Any, Self

from ninja import Schema
from pydantic import Field

from algorithms.experiments import Axis, Experiment
from algorithms.vocabulary import ParameterField
from controlplane.api.common.derived import columns_of, fields_of
from controlplane.api.common.schemas import ListOut, response_of
from controlplane.models import LabRun

_PARAMETER: Any = fields_of(ParameterField, without="type")
_EXPERIMENT: Any = fields_of(Experiment, without="panels parameters measures trial")


class ParameterOut(_PARAMETER):  # type: ignore[misc]  # the fields are those of the dataclass
    """One parameter; type is bool, int, float or str."""

    type: str

    @classmethod
    def of(cls, field: ParameterField) -> Self:
        """Return the body of a parameter."""
        return response_of(cls, field, type=field.type.__name__)


class ExperimentOut(_EXPERIMENT):  # type: ignore[misc]  # as above
    """An experiment: x is what is swept, over `values` by default; y is what is drawn over it."""

    y: list[Axis]
    parameters: list[ParameterOut]
    columns: Sequence[str]

    @classmethod
    def of(cls, experiment: Experiment) -> Self:
        """Return the body of an experiment; the swept parameter is x."""
        fields = experiment.parameters.fields()
        return response_of(
            cls,
            experiment,
            y=[panel.y for panel in experiment.panels],
            parameters=[ParameterOut.of(f) for f in fields if f.name != experiment.x.name],
        )


class RunIn(Schema):
    """An experiment and its parameters; missing values have the experiment's defaults."""

    planner: str = "placement"
    experiment: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    values: list[float] | None = None
    series: list[str] | None = None


_RUN: Any = columns_of(
    LabRun,
    "id planner experiment state progress requested_by requested_at started_at finished_at error",
    parameters=dict[str, Any],
    values=list[float],
    series=list[str],
)


class RunOut(_RUN):  # type: ignore[misc]  # the fields are columns
    """A run without its table; state is queued, running, done, failed or cancelled."""


class RunPage(ListOut):
    """One page of runs."""

    runs: list[RunOut]


class TableOut(Schema):
    """A table in long form: one row per (x, series, seed)."""

    columns: list[str]
    rows: list[list[Any]]
