"""Adapter of the shedding planner: a ladder of drop rules along the measured mix of inputs."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from algorithms.errors import PlanningError
from algorithms.shedding.planner import PLANNER
from controlplane.errors import Conflict
from controlplane.planners.shedding.inputs import SheddingInput
from controlplane.planners.shedding.ladder import compute_ladder, input_factor
from controlplane.planners.shedding.problem import network_of
from controlplane.planners.shedding.quality import kept_at_factor, part_of, parts_at
from controlplane.planning.adapter import PlannerAdapter, PlannerResult, PlanRequest, WatchSupport
from controlplane.planning.measures import Better, Measure, Unit
from controlplane.plans.plan import PlannedAction
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.cluster_actions import SetLadder
from controlplane.wire.routing.compiled_ladder import compiled_ladder
from controlplane.wire.routing.drop_rules import INPUT, Edge
from controlplane.wire.routing.ladder import Ladder

NO_PLAN: Final = (
    "No query may lose records: its minimum is 100 %, or no resource of the cluster can be full"
)
# The input factor at which the quality lost is a measure.
OVERLOAD: Final = 2.0


def plan_shedding(request: PlanRequest) -> PlannerResult:
    """Plan the ladder along the measured rates.

    Raises `Conflict` no_query, no_rates, no_costs, no_plan or too_large.
    """
    ladder = compute_ladder(request.snapshot)
    request.progress(1.0)
    if ladder is None:
        raise Conflict("no_plan", NO_PLAN)
    return PlannerResult([SetLadder(ladder)], {QUALITY.name: 0.0})


def ladder_after(snapshot: ClusterSnapshot, plan: Iterable[PlannedAction]) -> Ladder | None:
    """Return the ladder of a snapshot after a plan."""
    ladder = None if snapshot.ladder is None else Ladder.from_json(snapshot.ladder)
    for planned in plan:
        if isinstance(planned.action, SetLadder):
            ladder = planned.action.ladder
    return ladder


def _rungs(snapshot: ClusterSnapshot, _: Any, plan: Any) -> int:
    ladder = ladder_after(snapshot, plan)
    return len(ladder.rungs) if ladder is not None else 0


def _quality_lost(snapshot: ClusterSnapshot, _: Any, plan: Any) -> float | None:
    """Return the part of the value that is lost at twice what the cluster can process."""
    ladder, given = ladder_after(snapshot, plan), snapshot.input(SheddingInput)
    if ladder is None or given is None:
        return None
    return round(kept_at_factor(ladder, given, OVERLOAD).quality_lost, 9)


def _input_kept(snapshot: ClusterSnapshot, _: Any, plan: Any) -> float | None:
    ladder, given = ladder_after(snapshot, plan), snapshot.input(SheddingInput)
    if ladder is None or given is None:
        return None
    return round(kept_at_factor(ladder, given, OVERLOAD).input, 9)


def _dropped(snapshot: ClusterSnapshot, _: Any, plan: Any) -> float | None:
    """Return the part of the present input that the ladder drops."""
    ladder, given = ladder_after(snapshot, plan), snapshot.input(SheddingInput)
    factor = _factor(snapshot, _, plan) if ladder is not None else None
    if given is None or factor is None:
        return None if ladder is not None or given is None else 0.0
    return round(1 - kept_at_factor(ladder, given, factor).input, 9)


def _peak_load(snapshot: ClusterSnapshot, _: Any, plan: Any) -> float | None:
    """Return the load of the fullest resource at twice what the cluster can process.

    As a share of what the policy allows, after the drops of the ladder.
    """
    ladder = ladder_after(snapshot, plan)
    if ladder is None:
        return OVERLOAD
    try:
        network = network_of(snapshot)
        times = OVERLOAD / input_factor(network)
    except (Conflict, PlanningError):
        return None
    problem, model = network.problem, network.problem.model
    kept: dict[str, float] = {}
    parts = parts_at(ladder, compiled_ladder(ladder).position_of(OVERLOAD))
    # A stream of one query has one location; its input edge is the first.
    for (stream, query), name in network.locations.items():
        part = part_of(parts, stream, query) / _arriving(parts, stream, query)
        kept.setdefault(name, part)
    keep = np.array([kept.get(name, 1.0) for name in problem.network.locations])
    flows = model.flows(keep, problem.vector * times)
    loads = model.loads @ model.covered(flows) / model.capacities
    return round(float(loads.max()), 6)


def _arriving(parts: Mapping[Edge, float], stream: int, query: int) -> float:
    """Return the part of a stream's records that arrives at the drop location of an edge."""
    return 1.0 if query == INPUT else part_of(parts, stream, INPUT) or 1.0


def _factor(snapshot: ClusterSnapshot, _: Any, __: Any) -> float | None:
    """Return the input over what the cluster can process, None if it is not measured."""
    try:
        return round(input_factor(network_of(snapshot)), 6)
    except (Conflict, PlanningError):
        return None


QUALITY: Final = Measure(
    "quality_lost", "Quality lost at twice the capacity", Unit.SHARE, Better.LOWER, _quality_lost
)

PEAK_LOAD: Final = Measure(
    "peak_load", "Load at twice the capacity", Unit.SHARE, Better.LOWER, _peak_load
)

ADAPTER: Final = PlannerAdapter(
    planner=PLANNER,
    default="lp",
    effect="shedding plans",
    hint="Prepares what is dropped in an overload, so that the least quality is lost.",
    plan=plan_shedding,
    improves=(PEAK_LOAD.name, QUALITY.name),
    measures=(
        PEAK_LOAD,
        QUALITY,
        Measure(
            "input_kept", "Input kept at twice the capacity", Unit.SHARE, Better.HIGHER,
            _input_kept,
        ),
        Measure("dropped", "Input dropped", Unit.SHARE, Better.LOWER, _dropped),
        Measure("input_factor", "Input factor", Unit.RATIO, Better.NEITHER, _factor),
        Measure("rungs", "Drop levels", Unit.COUNT, Better.NEITHER, _rungs),
    ),
    compared=0,
    watch=WatchSupport(frozenset({"ladder", "capacity"}), order=3),
)  # fmt: skip
