"""The classes of parameters of all planners, algorithms, key groupings and experiments."""

from collections.abc import Iterator
from typing import Any

from algorithms.lab.experiments import EXPERIMENTS
from algorithms.lab.registry import PLANNERS
from algorithms.partitioning.catalog import GROUPINGS


def declarations() -> Iterator[tuple[str, type[Any]]]:
    """Yield every class of parameters with its place."""
    for planner in PLANNERS:
        yield planner.name, planner.problem
        for algorithm in planner.algorithms:
            yield f"{planner.name}/{algorithm.name}", algorithm.parameters
    for name, grouping in GROUPINGS.items():
        yield f"key grouping {name}", grouping.parameters
    for name, experiments in EXPERIMENTS.items():
        for experiment in experiments:
            yield f"{name}:{experiment.name}", experiment.parameters
