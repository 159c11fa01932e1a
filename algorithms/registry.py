"""Every planner and algorithm for clusters by name; forms, API and CLI are derived from here.

A package of `algorithms` with a module `planner` that has a value `PLANNER` is a planner. Another
distribution adds a planner by an entry point of the group `weir.planners`: its name is the
planner's, its value the package. To add an algorithm: its parameter class with `solve`, then one
row in its planner's value.
"""

import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeVar

import algorithms as root
from algorithms.errors import PlanningError, UnknownPlanner
from algorithms.planner import Planner

GROUP: Final = "weir.planners"
P = TypeVar("P", bound=Planner)


@cache
def planner_packages() -> Mapping[str, str]:
    """Return the package of each planner by the planner's name."""
    packages = {
        name: f"{root.__name__}.{name}"
        for _, name, is_package in pkgutil.iter_modules(root.__path__)
        # Not by its import: packages without a planner need scipy.
        if is_package and name != "lab" and Path(root.__path__[0], name, "planner.py").exists()
    }
    points = {point.name: point.value for point in entry_points(group=GROUP)}
    return packages | {name: path for name, path in points.items() if find_spec(f"{path}.planner")}


PLANNERS: Final[tuple[Planner, ...]] = tuple(
    sorted(
        (import_module(f"{path}.planner").PLANNER for path in planner_packages().values()),
        key=lambda planner: (planner.order, planner.name),
    )
)


def named(planners: Iterable[P], name: str) -> P:
    """Return the planner of a name. Raises `UnknownPlanner`, which names the known ones."""
    known = {known_planner.name: known_planner for known_planner in planners}
    if name not in known:
        raise UnknownPlanner(name, tuple(known))
    return known[name]


def parameter_titles(planner_name: str, name: str) -> Mapping[str, str]:
    """Return the titles of an algorithm's parameters by name, none if it is unknown."""
    try:
        chosen = named(PLANNERS, planner_name)
        fields = chosen.fields(chosen.algorithm(name))
    except PlanningError:
        return {}
    return {field.name: field.title for field in fields}


def algorithm_title(planner_name: str, name: str, planners: Iterable[Planner] = PLANNERS) -> str:
    """Return the title of an algorithm, the words of its name if it is unknown."""
    try:
        return named(planners, planner_name).algorithm(name).title
    except PlanningError:
        return name.replace("_", " ")
