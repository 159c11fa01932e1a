"""The part of a sweep that a Spark task computes: one trial. Needs no framework of Weir."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from algorithms.lab.experiment import ResultRow
from algorithms.lab.experiments import experiment


@dataclass(frozen=True)
class TrialTask:
    """What a Spark task needs to compute one trial; experiments are looked up by their name."""

    planner: str
    experiment: str
    parameters: Mapping[str, Any]
    seed: int
    series: tuple[str, ...]


def compute_trial(task: TrialTask) -> list[ResultRow]:
    """Return the rows of one trial."""
    chosen = experiment(task.planner, task.experiment)
    point = chosen.parameters.from_mapping(task.parameters)
    return list(chosen.trial_rows(point, task.seed, task.series))
