"""Every planner and algorithm by name; forms, API schema, CLI and benchmarks are derived here.

To add a planner: a package with a module `planner` that has a value `PLANNER` (`discovery`). To add
an algorithm: its parameter class with `solve`, then one row in its planner's value.
"""

from typing import Final, cast

from algorithms.discovery import planner_modules
from algorithms.errors import UnknownPlanner
from algorithms.planner import Algorithm, Planner
from algorithms.vocabulary import Kind

PLACEMENT: Final = "placement"

PLANNERS: Final[tuple[Planner, ...]] = tuple(
    sorted(
        (cast("Planner", module.PLANNER) for module in planner_modules("planner").values()),
        key=lambda planner: (planner.order, planner.name),
    )
)


def planner(name: str) -> Planner:
    """Return one planner. Raises `UnknownPlanner`, which names the known ones."""
    known = {known_planner.name: known_planner for known_planner in PLANNERS}
    if name not in known:
        raise UnknownPlanner(name, tuple(known))
    return known[name]


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


def planners() -> tuple[str, ...]:
    """Return the names of the planners."""
    return tuple(item.name for item in PLANNERS)
