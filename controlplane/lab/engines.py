"""Engines that compute the points of a run: the Lab's worker itself, or Spark."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from algorithms.lab.experiment import Emit, Experiment, Repeated
from algorithms.lab.experiments import Table
from algorithms.vocabulary import Progress


class EngineUnavailable(Exception):
    """The engine that a run requests cannot start here, such as Spark without Java."""


@dataclass(frozen=True)
class Sweep:
    """The points of a run: an experiment, its parameters, the values of x and the series.

    `master`: the Spark master, "" for the Lab's worker.
    """

    experiment: Experiment
    parameters: Repeated
    values: tuple[float, ...]
    series: tuple[str, ...]
    master: str = ""


Engine = Callable[[Sweep, Progress, Emit], Table]


def compute_here(sweep: Sweep, progress: Progress, emit: Emit) -> Table:
    """Return the table of a sweep, computed in this process, one point after the other."""
    return sweep.experiment.run(sweep.parameters, sweep.values, sweep.series, progress, emit)


WORKER: Final = "worker"
SPARK: Final = "spark"
HERE: Final[Mapping[str, Engine]] = {WORKER: compute_here}


def engine_of(sweep: Sweep, engines: Mapping[str, Engine]) -> Engine:
    """Return the engine of a sweep. Raises `EngineUnavailable`."""
    name = SPARK if sweep.master else WORKER
    if name not in engines:
        raise EngineUnavailable("This worker of the Lab has no Spark")
    return engines[name]
