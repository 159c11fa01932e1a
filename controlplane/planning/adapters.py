"""The adapters of the connected planners.

A planner of this distribution has its package in `controlplane.planners`, one of another
distribution is a package of its own (`algorithms.registry`). Its module `adapter` has one value,
`ADAPTER`. Adapters need no database: a decoder of cluster descriptions knows the planners by them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from algorithms.registry import planner_packages
from controlplane.errors import Invalid
from controlplane.planning.adapter import Missing, PlannerAdapter
from controlplane.planning.measures import COMMON, Measure

if TYPE_CHECKING:
    from controlplane.models import Cluster
    from controlplane.plans.snapshot import PlannerInput

InputReader = Callable[["Cluster"], "PlannerInput"]
_PACKAGES: Final = "controlplane.planners"


def planner_modules(name: str, packages: str = _PACKAGES) -> Iterator[ModuleType]:
    """Yield the modules of a name of the planners that have one, in any order.

    `packages`: the package that has those of this distribution.
    """
    for planner in planner_packages():
        if module := _module_of(planner, name, packages):
            yield module


def input_readers(planners: Iterable[str]) -> frozenset[InputReader]:
    """Return what reads the parts that only snapshots of these planners have.

    A planner with such a part has a function `read_input` in its module `observation`.
    """
    readers = (_observing(planner, "read_input") for planner in planners)
    return frozenset(reader for reader in readers if reader is not None)


def missing_for(cluster: "Cluster", adapter: PlannerAdapter, algorithm: str = "") -> Missing | None:
    """Return what a cluster lacks for a plan of an algorithm, the default for "", None if nothing.

    A planner that can lack something has a function `missing` in its module `observation`.
    """
    missing = _observing(adapter.name, "missing")
    return missing(cluster, algorithm or adapter.default) if missing is not None else None


def measured_by(planner: str, cluster: "Cluster", since: datetime) -> Mapping[str, float]:
    """Return what was measured of a planner's own measures since a time, by name.

    A planner that measures some has a function `measured` in its module `assessment`.
    """
    measured = _observing(planner, "measured", "assessment")
    return measured(cluster, since) if measured is not None else {}


def _observing(planner: str, name: str, module: str = "observation") -> Any:
    """Return a function of a module of a planner, None without it."""
    if planner not in planner_packages():
        return None
    return getattr(_module_of(planner, module, _PACKAGES), name, None)


def _module_of(planner: str, name: str, packages: str) -> ModuleType | None:
    for package in (f"{packages}.{planner}", planner_packages()[planner]):
        if find_spec(package) and find_spec(f"{package}.{name}"):
            return import_module(f"{package}.{name}")
    return None


@cache
def adapters() -> Mapping[str, PlannerAdapter]:
    """Return the adapters by the names of their planners, in the order of the planners."""
    values: list[PlannerAdapter] = [module.ADAPTER for module in planner_modules("adapter")]
    values.sort(key=lambda adapter: (adapter.planner.order, adapter.name))
    return MappingProxyType({adapter.name: adapter for adapter in values})


def adapter_of(planner: str) -> PlannerAdapter:
    """Return the adapter of a planner. Raises `Invalid` with the known names."""
    known = adapters()
    if planner not in known:
        names = ", ".join(known)
        raise Invalid({"planner": [f"Must be one of {names}, not {planner[:40] or 'empty'}"]})
    return known[planner]


def measures_of(planner: str) -> tuple[Measure, ...]:
    """Return the measures of a planner's proposals, the common ones if it is not installed."""
    return (*COMMON, *own_measures(planner))


def own_measures(planner: str) -> tuple[Measure, ...]:
    """Return the measures that only proposals of a planner have, () if it is not installed."""
    adapter = adapters().get(planner)
    return () if adapter is None else adapter.measures


def improved_by(planner: str) -> Sequence[str]:
    """Return the measures of the gain of a planner's plans, () if it is not installed."""
    adapter = adapters().get(planner)
    return () if adapter is None else adapter.improves


@cache
def all_measures() -> Mapping[str, Measure]:
    """Return all measures by name: the common ones and those of the planners."""
    own = (measure for adapter in adapters().values() for measure in adapter.measures)
    return MappingProxyType({measure.name: measure for measure in (*COMMON, *own)})
