"""Measures of a cluster before and after a plan: declaration and computation."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from algorithms.balance import imbalance
from controlplane.planning.load_model import LoadModel
from controlplane.plans.plan import PlannedAction, TaskMove
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.cluster_actions import SetNodeActive


class Better(StrEnum):
    """The direction in which a measure improves."""

    LOWER = "lower"
    HIGHER = "higher"
    NEITHER = "neither"


class Unit(StrEnum):
    """The units of measures, which determine the format of values."""

    RATIO = "ratio"
    SHARE = "share"
    RATE = "records/s"
    DELIVERIES = "deliveries/s"
    PARTIALS = "partial results/s"
    BYTES = "bytes"
    COUNT = "count"


# A snapshot with a plan: the model before it, the model after it, and the plan.
Compute = Callable[[ClusterSnapshot, LoadModel, "tuple[PlannedAction, ...]"], Any]


@dataclass(frozen=True)
class Measure:
    """A measure: `name` in JSON, `title` for people, unit and better direction.

    `per_node`: True for a list of values by node, in the snapshot's order. `compute` returns the
    value for a snapshot, the loads after a plan, and the plan; None if it is unknown.
    """

    name: str
    title: str
    unit: Unit
    better: Better
    compute: Compute
    per_node: bool = False


def _replication_factor(_: ClusterSnapshot, model: LoadModel, __: Any) -> float | None:
    return model.replication_factor


def _imbalance(_: ClusterSnapshot, model: LoadModel, __: Any) -> float:
    return imbalance(model.loads / model.capacities)


def _fullest(_: ClusterSnapshot, model: LoadModel, __: Any) -> float:
    return float((model.loads / model.capacities).max()) if len(model.loads) else 0.0


def _stranded(snapshot: ClusterSnapshot, model: LoadModel, plan: Any) -> int:
    """Return the number of tasks on nodes that must not host any."""
    active = {node.index: node.active for node in snapshot.nodes}
    for planned in plan:
        if not isinstance(planned, TaskMove) and isinstance(planned.action, SetNodeActive):
            active[planned.action.node] = planned.action.active
    hosted = model.hosted()[0].tolist()
    return sum(
        tasks
        for index, tasks in zip(model.indices.tolist(), hosted, strict=True)
        if not active.get(index, True)
    )


REPLICATION_FACTOR: Final = Measure(
    "replication_factor", "Replication factor", Unit.RATIO, Better.LOWER, _replication_factor
)
IMBALANCE: Final = Measure("imbalance", "Imbalance", Unit.SHARE, Better.LOWER, _imbalance)
FULLEST: Final = Measure("fullest", "Load of fullest node", Unit.SHARE, Better.LOWER, _fullest)
TRAFFIC: Final = Measure(
    "traffic", "Traffic", Unit.DELIVERIES, Better.LOWER, lambda _, m, __: float(m.loads.sum())
)
STRANDED: Final = Measure(
    "stranded", "Tasks on inactive nodes", Unit.COUNT, Better.LOWER, _stranded
)
# The name of a planner's measure that has a watch loop and a limit in the policy.
SKEW: Final = "skew"
# Of split nodes; the measure is of the admission planner.
SPLIT_OVERLOAD: Final = "split_overload"
# A placement keeps the limit of the imbalance also when the load has grown so many times.
GROWTH: Final = 1.1
COMMON: Final = (
    REPLICATION_FACTOR,
    TRAFFIC,
    IMBALANCE,
    FULLEST,
    STRANDED,
    Measure(
        "max_load", "Most tasks on a node", Unit.COUNT, Better.LOWER,
        lambda _, m, __: int(m.hosted()[0].max(initial=0)),
    ),
    Measure(
        "loads", "Tasks", Unit.COUNT, Better.NEITHER,
        lambda _, m, __: m.hosted()[0].tolist(), per_node=True,
    ),
    Measure(
        "rates", "Load", Unit.DELIVERIES, Better.NEITHER, lambda _, m, __: m.loads.tolist(),
        per_node=True,
    ),
    Measure(
        "capacities", "Capacity", Unit.DELIVERIES, Better.NEITHER,
        lambda _, m, __: m.capacities.tolist(), per_node=True,
    ),
    Measure(
        "state", "State", Unit.BYTES, Better.NEITHER, lambda _, m, __: m.hosted()[1].tolist(),
        per_node=True,
    ),
)  # fmt: skip


def measures(
    snapshot: ClusterSnapshot,
    plan: Iterable[PlannedAction] = (),
    more: Iterable[Measure] = (),
    model: LoadModel | None = None,
) -> dict[str, Any]:
    """Return the common measures and `more` by name, of the snapshot after a plan.

    Traffic and load are deliveries/s: each record once per node; the replication factor is the
    traffic over the records read. `model`: the loads of the snapshot if the caller has them.
    """
    planned = tuple(plan)
    after = (model or LoadModel.of(snapshot)).after(planned)
    return {measure.name: measure.compute(snapshot, after, planned) for measure in (*COMMON, *more)}


def cluster_values(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the measures that have one value for the cluster."""
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


def aimed_values(limits: Mapping[str, float], dead_band: float) -> dict[str, float]:
    """Return the values that placements aim at: alerts end below their limits by the dead band.

    The imbalance grows with the load, for which there is room.
    """
    aims = {name: (1 - dead_band) * limit for name, limit in limits.items()}
    return aims | {IMBALANCE.name: aims[IMBALANCE.name] / GROWTH}
