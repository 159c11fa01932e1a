"""Discovery of planners: the packages in `algorithms`, and those of installed distributions.

A package is a planner if it has a module `planner`. Another distribution adds a planner by an entry
point of the group `weir.planners`: its name is the planner's, its value the package.
"""

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from types import ModuleType
from typing import Final

import algorithms

GROUP: Final = "weir.planners"


@cache
def planner_packages() -> Mapping[str, str]:
    """Return the package of each planner by the planner's name."""
    packages = {
        name: f"{algorithms.__name__}.{name}"
        for _, name, is_package in pkgutil.iter_modules(algorithms.__path__)
        if is_package
    }
    packages |= {point.name: point.value for point in entry_points(group=GROUP)}
    return {name: path for name, path in packages.items() if find_spec(f"{path}.planner")}


def planner_modules(module: str) -> Mapping[str, ModuleType]:
    """Return the modules of this name of the planners that have it, by planner."""
    return {
        name: import_module(f"{path}.{module}")
        for name, path in planner_packages().items()
        if find_spec(f"{path}.{module}")
    }
