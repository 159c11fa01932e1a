"""The adapters of the connected planners.

A planner of this distribution is connected by a module of its name in this package, one of another
distribution by a module `adapter` in its own package (`algorithms.registry`). Each has one value,
`ADAPTER`.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType

from algorithms.registry import planner_packages
from controlplane.errors import Invalid
from controlplane.planning.adapter import PlannerAdapter
from controlplane.planning.measures import COMMON, Measure


@cache
def adapters() -> Mapping[str, PlannerAdapter]:
    """Return the adapters by the names of their planners, in the order of the planners."""
    values: list[PlannerAdapter] = [import_module(path).ADAPTER for path in _modules()]
    values.sort(key=lambda adapter: (adapter.planner.order, adapter.name))
    return MappingProxyType({adapter.name: adapter for adapter in values})


def _modules() -> Iterator[str]:
    for name, package in planner_packages().items():
        for path in (f"{__name__}.{name}", f"{package}.adapter"):
            if find_spec(path):
                yield path
                break


def adapter_of(planner: str) -> PlannerAdapter:
    """Return the adapter of a planner. Raises `Invalid` with the known names."""
    known = adapters()
    if planner not in known:
        names = ", ".join(known)
        raise Invalid({"planner": [f"Must be one of {names}, not {planner[:40] or 'empty'}"]})
    return known[planner]


def measures_of(planner: str) -> tuple[Measure, ...]:
    """Return the measures of a planner's proposals, the common ones if it is not installed."""
    adapter = adapters().get(planner)
    return (*COMMON, *(adapter.measures if adapter is not None else ()))


@cache
def all_measures() -> Mapping[str, Measure]:
    """Return all measures by name: the common ones and those of the planners."""
    own = (measure for adapter in adapters().values() for measure in adapter.measures)
    return MappingProxyType({measure.name: measure for measure in (*COMMON, *own)})
