"""Every experiment by planner and name; command line, tasks and pages are derived from here.

    from algorithms.lab.experiments import experiment, summarise

    found = experiment("placement", "fig4a")
    table = found.run(found.parameters(queries=10_000), values=[1.5, 2.0])
    print(summarise(table, found.x.name, found.panels[0].y.name))

To add one: an `Experiment` in the planner's package, then its name in the tuple `EXPERIMENTS` of
`algorithms/lab/<planner>/experiments/__init__.py`.
"""

from collections.abc import Mapping
from typing import Final

from algorithms.lab.admission import experiments as admission
from algorithms.lab.errors import UnknownExperiment
from algorithms.lab.experiment import Axis, Experiment, Panel, Repeated
from algorithms.lab.migration import experiments as migration
from algorithms.lab.partitioning import experiments as partitioning
from algorithms.lab.placement import experiments as placement
from algorithms.lab.registry import algorithm_title
from algorithms.lab.shedding import experiments as shedding
from algorithms.lab.tables import Cell, Table, summarise

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
    "series_title",
    "summarise",
]

# By planner, for the planners that have experiments.
EXPERIMENTS: Final[Mapping[str, tuple[Experiment, ...]]] = {
    "placement": placement.EXPERIMENTS,
    "migration": migration.EXPERIMENTS,
    "admission": admission.EXPERIMENTS,
    "partitioning": partitioning.EXPERIMENTS,
    "shedding": shedding.EXPERIMENTS,
}


def experiments(planner: str) -> tuple[Experiment, ...]:
    """Return the experiments of a planner, in the order of the paper's figures."""
    return EXPERIMENTS.get(planner, ())


def series_title(planner: str, experiment_name: str, series: str) -> str:
    """Return the title of a series: that of the experiment, else that of its algorithm.

    Stored runs may name experiments and series that no longer exist.
    """
    for item in experiments(planner):
        if item.name == experiment_name and series in item.series_titles:
            return item.series_titles[series]
    return algorithm_title(planner, series)


def experiment(planner: str, name: str) -> Experiment:
    """Return one experiment. Raises `UnknownExperiment`, which names the known ones."""
    known = {item.name: item for item in experiments(planner)}
    if name not in known:
        raise UnknownExperiment(planner, name, tuple(known))
    return known[name]
