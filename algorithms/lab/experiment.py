"""Experiments: one swept parameter, compared series, several seeds, a table."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from algorithms.errors import BadParameters
from algorithms.estimates import MB, Estimate, total
from algorithms.lab.claims import Claim
from algorithms.lab.tables import FIGURES, Cell, Table
from algorithms.vocabulary import Parameters, Progress, parameter, portion, silent, title_of_name

Measures = Mapping[str, Any]
# (parameters with x at one of its values, seed, series, progress) -> (series, its measures)
Trial = Callable[[Any, int, Sequence[str], Progress], Iterator[tuple[str, Measures]]]


@dataclass(frozen=True)
class ResultRow:
    """A row of an experiment's table, and the seconds that its series took on its workload."""

    series: str
    cells: tuple[Cell, ...]
    seconds: float


@dataclass(frozen=True)
class TrialRequest:
    """The workload of one seed at one value of x; `share`: its estimated part of the run's time."""

    point: Any
    seed: int
    share: float


Emit = Callable[[ResultRow], None]


def ignore(row: ResultRow) -> None:
    """Ignore a row: the default of every run."""


# A hundred times the seeds of the papers.
MAX_SEEDS: Final = 1_000


@dataclass(frozen=True)
class Axis:
    """One quantity: `name` is its column in the table, `label` its title on pages."""

    name: str
    label: str
    unit: str = ""
    log: bool = False


@dataclass(frozen=True)
class Panel:
    """One y over the experiment's x."""

    title: str
    y: Axis


@dataclass(frozen=True)
class Repeated(Parameters):
    """Base of every experiment's parameters."""

    seeds: int = parameter(
        3,
        help="How many workloads are drawn per point, with the seeds 0, 1, 2, ...; the paper "
        "averages 10.",
        minimum=1,
        maximum=MAX_SEEDS,
    )

    def estimate_trial(self, series: str) -> Estimate:
        """Return the estimate of one series on the workload of one seed."""
        del series
        return Estimate(64 * MB, 10.0)


@dataclass(frozen=True)
class Experiment:
    """A named sweep over one parameter.

    `x` is named like the field of `parameters` that is swept and has its title; `values` are its
    values by default. `series` are the algorithms compared by default, `choices` all that can be.
    `about` describes what it shows, where the paper has it, and what was chosen where the paper is
    silent. `trial` draws the workload of one seed and yields the measures of each series on it;
    `measures` names them, `axes` has those without a panel. `series_titles`: the titles of the
    choices that are not algorithms of the planner. `claims`: what the paper claims about
    the figure; they are tested on runs whose parameters have at least the values of `claim_scale`.
    Raises `ValueError` if x is named like another column of the table or of its summary.
    """

    planner: str
    name: str
    title: str
    about: str
    x: Axis
    panels: tuple[Panel, ...]
    parameters: type[Repeated]
    values: tuple[float, ...]
    series: tuple[str, ...]
    choices: tuple[str, ...]
    measures: tuple[str, ...]
    trial: Trial
    claims: tuple[Claim, ...] = ()
    claim_scale: tuple[tuple[str, float], ...] = ()
    axes: tuple[Axis, ...] = ()
    series_titles: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        taken = ("series", "seed", *self.measures, *FIGURES)
        if self.x.name in taken:
            raise ValueError(
                f"x of the experiment {self.planner} {self.name} is named {self.x.name}, as another"
                f" column of its table: name it none of {', '.join(taken)}"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table: x, "series", "seed", then the measures."""
        return (self.x.name, "series", "seed", *self.measures)

    def axis_of(self, measure: str) -> Axis:
        """Return the axis of a measure, with the words of its name as label if it has none."""
        known = {axis.name: axis for axis in (*self.axes, *(panel.y for panel in self.panels))}
        return known.get(measure) or Axis(measure, title_of_name(measure))

    def run(
        self,
        parameters: Repeated,
        values: Sequence[float] | None = None,
        series: Sequence[str] | None = None,
        progress: Progress = silent,
        emit: Emit = ignore,
    ) -> Table:
        """Run all points and return one row per (x, series, seed).

        `emit` is called with each row as soon as it is computed. What `progress` and `emit` raise
        stops the run. Raises `BadParameters` on parameters of another experiment, values that x
        cannot take, and unknown or no series.
        """
        chosen = self.checked_series(self.series if series is None else series)
        requests = self.trial_requests(parameters, values, chosen)
        progress(0.0)
        rows: list[ResultRow] = []
        passed = 0.0
        for request in requests:
            within = portion(progress, passed, request.share)
            for row in self.trial_rows(request.point, request.seed, chosen, within):
                rows.append(row)
                emit(row)
            passed += request.share
        progress(1.0)
        return self.table_of(rows)

    def trial_requests(
        self, parameters: Repeated, values: Sequence[float] | None, series: Sequence[str]
    ) -> list[TrialRequest]:
        """Return the trials of a run, in the order of their rows. Raises as `run`."""
        points = self.points(parameters, self.values if values is None else values)
        costs = [sum(point.estimate_trial(name).seconds for name in series) for point in points]
        whole = sum(costs) * parameters.seeds
        return [
            TrialRequest(point, seed, cost / whole if whole else 1 / len(points) / parameters.seeds)
            for point, cost in zip(points, costs, strict=True)
            for seed in range(parameters.seeds)
        ]

    def trial_rows(
        self, point: Repeated, seed: int, series: Sequence[str], progress: Progress = silent
    ) -> Iterator[ResultRow]:
        """Yield the rows of one trial, a row per series.

        The seconds of the first series include drawing the workload.
        """
        x = getattr(point, self.x.name)
        started = time.perf_counter()
        for name, measures in self.trial(point, seed, series, progress):
            record = {self.x.name: x, "series": name, "seed": seed, **measures}
            cells = Table.from_records(self.columns, [record]).rows[0]
            yield ResultRow(name, cells, time.perf_counter() - started)
            started = time.perf_counter()

    def table_of(self, rows: Sequence[ResultRow]) -> Table:
        """Return the table of rows, in their order."""
        return Table(self.columns, tuple(row.cells for row in rows))

    def estimate(
        self,
        parameters: Repeated,
        values: Sequence[float] | None = None,
        series: Sequence[str] | None = None,
    ) -> Estimate:
        """Return the estimate of a run: all trials one after the other. Raises as `run`."""
        points = self.points(parameters, self.values if values is None else values)
        chosen = self.checked_series(self.series if series is None else series)
        trials = [point.estimate_trial(name) for point in points for name in chosen]
        once = total(trials)
        return Estimate(once.bytes, once.seconds * parameters.seeds)

    def points(self, parameters: Repeated, values: Sequence[float]) -> list[Repeated]:
        """Return the parameters with x at each of `values`. Raises `BadParameters`."""
        if type(parameters) is not self.parameters:
            wanted, given = self.parameters.__name__, type(parameters).__name__
            raise BadParameters({"parameters": [f"must be {wanted}, not {given}"]})
        if not values:
            raise BadParameters({"values": ["must name at least one value"]})
        return [self._point(parameters, value) for value in values]

    def checked_series(self, series: Sequence[str]) -> tuple[str, ...]:
        """Return the series without repetitions. Raises `BadParameters` on unknown ones."""
        unknown = [name for name in series if name not in self.choices]
        if unknown:
            why = f"{', '.join(unknown)}: not among {', '.join(self.choices)}"
            raise BadParameters({"series": [why]})
        if not series:
            raise BadParameters({"series": ["must name at least one series"]})
        return tuple(dict.fromkeys(series))

    def _point(self, parameters: Repeated, value: float) -> Repeated:
        kind = next(f.type for f in self.parameters.fields() if f.name == self.x.name)
        whole = kind is int and isinstance(value, float) and value.is_integer()
        swept = {self.x.name: int(value) if whole else value}
        try:
            return self.parameters.from_mapping(parameters.to_mapping() | swept)
        except BadParameters as bad:
            raise BadParameters({"values": bad.fields[self.x.name]}) from bad


def part(progress: Progress, index: int, count: int) -> Progress:
    """Return a progress from 0 to 1 for part `index` of `count` equal parts."""
    return portion(progress, index / count, 1 / count)


def with_claims(
    experiments: Sequence[Experiment],
    claims: Mapping[str, tuple[Claim, ...]],
    scale: Mapping[str, float],
) -> tuple[Experiment, ...]:
    """Return the experiments with their claims, and the scale for those parameters they have.

    Raises `ValueError` on claims of other experiments.
    """
    unknown = set(claims) - {item.name for item in experiments}
    if unknown:
        raise ValueError(f"claims of unknown experiments: {', '.join(sorted(unknown))}")
    return tuple(
        replace(
            item,
            claims=claims.get(item.name, ()),
            claim_scale=tuple(
                (field.name, scale[field.name])
                for field in item.parameters.fields()
                if field.name in scale and field.name != item.x.name
            ),
        )
        for item in experiments
    )
