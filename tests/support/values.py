"""The dataclasses of packages."""

import importlib
import pkgutil
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any


def dataclasses_of(package: ModuleType) -> list[Any]:
    """Return the dataclasses that the modules of a package define."""
    modules = [
        importlib.import_module(info.name)
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and is_dataclass(value) and value.__module__ == module.__name__
    ]


def mutable_dataclasses(package: ModuleType) -> set[str]:
    """Return the names of the dataclasses of a package that can be changed."""
    return {
        kind.__name__ for kind in dataclasses_of(package) if not kind.__dataclass_params__.frozen
    }
