"""Every planner with the algorithms of the Lab and the JSON form of problems and plans, by name.

The command line of the planners, experiments and benchmarks are derived from here.
"""

from typing import Final

from algorithms import registry
from algorithms.lab.admission import planner as admission
from algorithms.lab.migration import planner as migration
from algorithms.lab.partitioning import planner as partitioning
from algorithms.lab.placement import planner as placement
from algorithms.lab.planner import JsonPlanner
from algorithms.lab.shedding import planner as shedding
from algorithms.planner import Algorithm
from algorithms.vocabulary import Kind

PLACEMENT: Final = placement.PLANNER.name
PLANNERS: Final[tuple[JsonPlanner, ...]] = (
    placement.PLANNER,
    migration.PLANNER,
    admission.PLANNER,
    partitioning.PLANNER,
    shedding.PLANNER,
)


def planner(name: str) -> JsonPlanner:
    """Return one planner. Raises `UnknownPlanner`, which names the known ones."""
    return registry.named(PLANNERS, name)


def algorithms(planner_name: str, kind: Kind | None = None) -> tuple[Algorithm, ...]:
    """Return the algorithms of a planner, best known first, perhaps of one kind only.

    Raises `UnknownPlanner`.
    """
    of_planner = planner(planner_name).algorithms
    return tuple(algorithm for algorithm in of_planner if kind in (None, algorithm.kind))


def algorithm(planner_name: str, name: str) -> Algorithm:
    """Return one algorithm.

    Raises `UnknownPlanner` or `UnknownAlgorithm`, which name the known ones.
    """
    return planner(planner_name).algorithm(name)


def algorithm_title(planner_name: str, name: str) -> str:
    """Return the title of an algorithm, the words of its name if it is unknown."""
    return registry.algorithm_title(planner_name, name, PLANNERS)
