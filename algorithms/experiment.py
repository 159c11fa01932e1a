"""Experiments: one swept parameter, compared series, several seeds, a table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from algorithms.errors import BadParameters
from algorithms.estimates import MB, Estimate, total
from algorithms.tables import FIGURES, Table
from algorithms.vocabulary import Parameters, Progress, parameter, portion, silent

Measures = Mapping[str, Any]
# (parameters with x at one of its values, seed, series, progress) -> (series, its measures)
Trial = Callable[[Any, int, Sequence[str], Progress], Iterator[tuple[str, Measures]]]


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

    `x` is named like the field of `parameters` that is swept; `values` are its values by
    default. `series` are the algorithms compared by default, `choices` all that can be.
    `about` describes what it shows, where the paper has it, and what was chosen where the paper is
    silent. `trial` draws the workload of one seed and yields the measures of each series on it;
    `measures` names them. Raises `ValueError` if x is named like another column of the table or of
    its summary.
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

    def run(
        self,
        parameters: Repeated,
        values: Sequence[float] | None = None,
        series: Sequence[str] | None = None,
        progress: Progress = silent,
    ) -> Table:
        """Run all points and return one row per (x, series, seed).

        What `progress` raises stops the run. Raises `BadParameters` on parameters of another
        experiment, values that x cannot take, and unknown or no series.
        """
        chosen = self.checked_series(self.series if series is None else series)
        points = self.points(parameters, self.values if values is None else values)
        trials = [(point, seed) for point in points for seed in range(parameters.seeds)]
        progress(0.0)
        records = [
            {self.x.name: getattr(point, self.x.name), "series": name, "seed": seed, **measures}
            for number, (point, seed) in enumerate(trials)
            for name, measures in self.trial(
                point, seed, chosen, part(progress, number, len(trials))
            )
        ]
        progress(1.0)
        return Table.from_records(self.columns, records)

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
