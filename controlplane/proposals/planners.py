"""The connected planners: their algorithms and parameters, with the defaults of a cluster."""

from collections.abc import Sequence
from dataclasses import dataclass

from algorithms.planner import Algorithm
from algorithms.vocabulary import ParameterField
from controlplane.models import Cluster
from controlplane.planning.adapter import PlannerAdapter
from controlplane.planning.adapters import adapters, measures_of
from controlplane.planning.measures import Measure


@dataclass(frozen=True)
class OfferedAlgorithm:
    """An algorithm and its parameters, with the defaults of a cluster."""

    algorithm: Algorithm
    fields: Sequence[ParameterField]
    default: bool


@dataclass(frozen=True)
class OfferedPlanner:
    """A connected planner, its algorithms, and the measures of its proposals."""

    adapter: PlannerAdapter
    algorithms: Sequence[OfferedAlgorithm]
    measures: Sequence[Measure]


def offered_planners(cluster: Cluster) -> list[OfferedPlanner]:
    """Return every connected planner, in their order."""
    return [_offered(adapter, cluster) for adapter in adapters().values()]


def _offered(adapter: PlannerAdapter, cluster: Cluster) -> OfferedPlanner:
    algorithms = [
        OfferedAlgorithm(
            algorithm, adapter.fields(algorithm, cluster), algorithm.name == adapter.default
        )
        for algorithm in adapter.algorithms
    ]
    return OfferedPlanner(adapter, algorithms, measures_of(adapter.name))
