"""What computes the actions of proposals: the adapters of planners, and the choices of people."""

from collections.abc import Mapping
from typing import Any

from controlplane.planning.adapter import PlannerResult, Progress
from controlplane.planning.adapters import adapter_of, adapters
from controlplane.planning.manual import MANUAL, plan_moves
from controlplane.plans.snapshot import ClusterSnapshot


def plan_for(
    planner: str,
    algorithm: str,
    parameters: Mapping[str, Any],
    snapshot: ClusterSnapshot,
    progress: Progress,
) -> PlannerResult:
    """Return a plan for a snapshot with checked parameters. Raises `Conflict` without one."""
    if planner == MANUAL:
        return plan_moves(snapshot, parameters)
    return adapter_of(planner).plan_for(algorithm, parameters, snapshot, progress)


def source_names() -> tuple[str, ...]:
    """Return the planners of proposals, the manual plans last."""
    return (*adapters(), MANUAL)
