"""Every experiment by planner and name; command line, tasks and pages are derived from here.

    from algorithms.experiments import experiment, summarised

    found = experiment("placement", "fig4a")
    table = found.run(found.parameters(queries=10_000), values=[1.5, 2.0])
    print(summarised(table, found.x.name, found.panels[0].y.name))

To add one: an `Experiment` in the planner's own room, then its name in that room's tuple.
"""

from collections.abc import Mapping
from typing import Final

from algorithms.errors import UnknownExperiment
from algorithms.experiment import Axis, Experiment, Panel, Repeated
from algorithms.migration.experiments import MIGRATION_EXPERIMENTS
from algorithms.migration.planner import MIGRATION
from algorithms.placement.experiments import PLACEMENT_EXPERIMENTS
from algorithms.registry import PLACEMENT
from algorithms.tables import Cell, Table, summarised

__all__ = [
    "EXPERIMENTS",
    "Axis",
    "Cell",
    "Experiment",
    "Panel",
    "Repeated",
    "Table",
    "experiment",
    "experiments",
    "summarised",
]

EXPERIMENTS: Final[Mapping[str, tuple[Experiment, ...]]] = {
    PLACEMENT: PLACEMENT_EXPERIMENTS,
    MIGRATION: MIGRATION_EXPERIMENTS,
}


def experiments(planner: str) -> tuple[Experiment, ...]:
    """Return the experiments of a planner, in the order of the paper's figures."""
    return EXPERIMENTS.get(planner, ())


def experiment(planner: str, name: str) -> Experiment:
    """Return one experiment. Raises `UnknownExperiment`, which names those there are."""
    found = {one.name: one for one in experiments(planner)}
    if name not in found:
        raise UnknownExperiment(planner, name, tuple(found))
    return found[name]
