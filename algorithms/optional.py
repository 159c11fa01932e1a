"""Packages that single planners need besides numpy, scipy and numba."""

from importlib import import_module
from typing import Any

from algorithms.errors import MissingDependency


def optional_module(name: str, extra: str = "") -> Any:
    """Import and return a module. Raises `MissingDependency` if its package is not installed.

    `extra`: the extra of Weir that installs the package.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        package = (missing.name or name).partition(".")[0]
        raise MissingDependency(package, extra) from None
