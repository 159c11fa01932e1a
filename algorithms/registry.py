"""Every planner and algorithm by name; forms, API schema, CLI and benchmarks are derived here.

A package of `algorithms` with a module `planner` that has a value `PLANNER` is a planner. Another
distribution adds a planner by an entry point of the group `weir.planners`: its name is the
planner's, its value the package. To add an algorithm: its parameter class with `solve`, then one
row in its planner's value.
"""

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final, cast

import algorithms as root
from algorithms.errors import PlanningError, UnknownPlanner
from algorithms.planner import Algorithm, Planner
from algorithms.vocabulary import Kind

GROUP: Final = "weir.planners"
PLACEMENT: Final = "placement"


@cache
def planner_packages() -> Mapping[str, str]:
    """Return the package of each planner by the planner's name."""
    packages = {
        name: f"{root.__name__}.{name}"
        for _, name, _ in pkgutil.iter_modules(root.__path__)
        # Not by its import: packages without a planner need scipy.
        if Path(root.__path__[0], name, "planner.py").exists()
    }
    points = {point.name: point.value for point in entry_points(group=GROUP)}
    return packages | {name: path for name, path in points.items() if find_spec(f"{path}.planner")}


def planner_modules(module: str) -> Mapping[str, ModuleType]:
    """Return the modules of this name of the planners that have it, by planner."""
    return {
        name: import_module(f"{path}.{module}")
        for name, path in planner_packages().items()
        if find_spec(f"{path}.{module}")
    }


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


def parameter_titles(planner_name: str, name: str) -> Mapping[str, str]:
    """Return the titles of an algorithm's parameters by name, none if it is unknown."""
    try:
        chosen = planner(planner_name)
        fields = chosen.fields(chosen.algorithm(name))
    except PlanningError:
        return {}
    return {field.name: field.title for field in fields}


def algorithm_title(planner_name: str, name: str) -> str:
    """Return the title of an algorithm, the words of its name if it is unknown."""
    try:
        return algorithm(planner_name, name).title
    except PlanningError:
        return name.replace("_", " ")
