"""Comparison of two runs of one experiment: one divided by the other, and what differs."""

from dataclasses import dataclass
from typing import Any

from algorithms.lab.experiments import Experiment, Table, summarise
from controlplane.errors import Conflict, Invalid
from controlplane.models import LabRun


@dataclass(frozen=True)
class ParameterDifference:
    """A parameter with different values in two runs; None where a run does not have it."""

    name: str
    this: Any
    other: Any


@dataclass(frozen=True)
class ComparedPoint:
    """The means over the seeds of both runs at one x; `ratio` is this over the other.

    None where a run has no value, and for a division by 0.
    """

    x: float
    series: str
    this: float | None
    other: float | None
    ratio: float | None


@dataclass(frozen=True)
class RunComparison:
    """Two runs of one experiment by one measure, at the values of x and series that both have."""

    measure: str
    differences: tuple[ParameterDifference, ...]
    points: tuple[ComparedPoint, ...]

    @property
    def farthest(self) -> ComparedPoint | None:
        """Return the point whose ratio is farthest from 1, None without any."""
        known = [point for point in self.points if point.ratio]
        return max(known, key=lambda point: _distance(point.ratio), default=None)


def _distance(ratio: float | None) -> float:
    return max(ratio or 1.0, 1.0 / (ratio or 1.0))


def compare(experiment: Experiment, run: LabRun, other: LabRun, measure: str = "") -> RunComparison:
    """Return the comparison of two runs of an experiment.

    `measure`: by default that of the first panel. Raises `Conflict` for runs of different
    experiments or without a table, `Invalid` for an unknown measure.
    """
    if (run.planner, run.experiment) != (other.planner, other.experiment):
        raise Conflict("other_experiment", "The runs are of different experiments")
    for item in (run, other):
        if not item.table:
            raise Conflict("no_table", f"Run {item.pk} is {item.state}", {"state": item.state})
    measure = measure or experiment.panels[0].y.name
    if measure not in experiment.measures:
        raise Invalid({"measure": [f"Must be one of {', '.join(experiment.measures)}"]})
    this, that = (_means(experiment, item, measure) for item in (run, other))
    points = [_point(key, this[key], that[key]) for key in this if key in that]
    return RunComparison(measure, differences(run, other), tuple(points))


def differences(run: LabRun, other: LabRun) -> tuple[ParameterDifference, ...]:
    """Return the parameters in which two runs differ; the Spark master is one of them."""
    ours, theirs = _parameters(run), _parameters(other)
    names = list(dict.fromkeys((*ours, *theirs)))
    return tuple(
        ParameterDifference(name, ours.get(name), theirs.get(name))
        for name in names
        if ours.get(name) != theirs.get(name)
    )


def _parameters(run: LabRun) -> dict[str, Any]:
    return dict(run.parameters) | {"values": run.values, "master": run.master}


def _means(
    experiment: Experiment, run: LabRun, measure: str
) -> dict[tuple[float, str], float | None]:
    x = experiment.x.name
    rows = summarise(Table.from_json(run.table), x, measure).records()
    return {(_number(row[x]) or 0.0, str(row["series"])): _number(row["mean"]) for row in rows}


def _point(key: tuple[float, str], this: float | None, other: float | None) -> ComparedPoint:
    known = this is not None and other is not None and other != 0
    ratio = this / other if known and this is not None and other is not None else None
    return ComparedPoint(*key, this, other, ratio)


def _number(cell: Any) -> float | None:
    return float(cell) if isinstance(cell, int | float) else None
