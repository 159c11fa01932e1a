"""The seam of what an installation may leave out: packages named `lab`, the Lab.

Weir names what it takes from the Lab and imports none of it; without the Lab that is nothing.
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

_LAB: Final = "lab"
_PACKAGES: Final = ("algorithms", "controlplane", "dashboard", "workers")


@cache
def has_lab() -> bool:
    """Return whether the Lab is installed: in all packages of Weir, or it is not used at all."""
    return all(find_spec(f"{package}.{_LAB}") is not None for package in _PACKAGES)


def lab_values(path: str) -> tuple[Any, ...]:
    """Return a tuple of a module of the Lab, `module:name`; an empty one without the Lab."""
    if not has_lab():
        return ()
    module, _, name = path.partition(":")
    values: tuple[Any, ...] = getattr(import_module(module), name)
    return values
