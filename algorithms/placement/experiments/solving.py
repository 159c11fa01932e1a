"""Algorithms on one instance: run and measure them."""

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from algorithms.experiment import Measures, part
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.result import PlacementPlan
from algorithms.registry import PLACEMENT, algorithm
from algorithms.vocabulary import Parameters, Progress

MEASURES: Final = (
    "replication_factor",
    "traffic",
    "max_load",
    "imbalance",
    "lower_bound",
    "sources",
    "seconds",
)


class Drawable(Protocol):
    """Parameters of an experiment that make one instance per seed."""

    def problem(self, seed: int) -> PlacementProblem:
        """Draw the instance of one seed."""

    def settings(self, seed: int) -> dict[str, float]:
        """Return the parameters of the algorithms, by the names of their parameters."""


def solved_in_turn(
    parameters: Drawable, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the measures of each algorithm of `series` on the instance of one seed."""
    problem = parameters.problem(seed)
    for number, name in enumerate(series):
        chosen = configured(name, parameters.settings(seed))
        plan = algorithm(PLACEMENT, name).solve(problem, chosen, part(report, number, len(series)))
        yield name, measures(problem, plan)


def configured(name: str, settings: dict[str, float]) -> Parameters:
    """Return the parameters of an algorithm, with those of the `settings` that it has."""
    kind = algorithm(PLACEMENT, name).parameters
    known = {field.name for field in kind.fields()}
    chosen: Parameters = kind.from_mapping({k: v for k, v in settings.items() if k in known})
    return chosen


def measures(problem: PlacementProblem, plan: PlacementPlan) -> Measures:
    """Return the figures of one plan; `imbalance` is the largest load over the mean, less 1."""
    mean = problem.queries / problem.servers
    return {
        "replication_factor": plan.replication_factor,
        "traffic": plan.traffic,
        "max_load": plan.max_load,
        "imbalance": plan.max_load / mean - 1 if mean else None,
        "lower_bound": plan.lower_bound,
        "sources": int((problem.readers > 0).sum()),
        "seconds": plan.seconds,
    }
