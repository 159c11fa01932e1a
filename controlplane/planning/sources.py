"""What computes the actions of proposals: the adapters of planners, and the choices of people."""

from collections.abc import Mapping
from typing import Any

from algorithms.errors import UnknownPlanner
from algorithms.registry import PLANNERS, named
from algorithms.vocabulary import title_of_name
from controlplane.planning.adapter import PlannerResult, Progress
from controlplane.planning.adapters import adapter_of, adapters
from controlplane.planning.manual import MANUAL, TITLE, plan_moves
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


def planner_title(planner: str) -> str:
    """Return what the plans of a planner do, such as “Move queries between nodes”."""
    if planner == MANUAL:
        return TITLE
    try:
        return named(PLANNERS, planner).title
    except UnknownPlanner:
        return title_of_name(planner)
