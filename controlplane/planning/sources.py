"""What computes the actions of proposals: the adapters of planners, and the choices of people.

A person chooses moves of queries to a node, as actions on a snapshot.
"""

from collections.abc import Mapping
from typing import Any, Final

from algorithms.errors import UnknownPlanner
from algorithms.estimates import Estimate, total
from algorithms.registry import PLANNERS, named
from algorithms.vocabulary import Parameters, title_of_name
from controlplane.errors import Conflict
from controlplane.planning.adapter import Defaults, PlannerResult, Progress
from controlplane.planning.adapters import adapter_of, adapters
from controlplane.planning.estimates import size_of
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.query_actions import MoveTasks


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


# In the place of a planner and its algorithm.
MANUAL: Final = "manual"
MOVES: Final = "moves"
TITLE: Final = "Move chosen queries"


def plan_moves(snapshot: ClusterSnapshot, parameters: Mapping[str, Any]) -> PlannerResult:
    """Return the moves of the chosen queries that run on another node.

    `parameters`: `queries`, their ids, and `node`, the index of the node. Queries that have ended
    or have several tasks are skipped. Raises `Conflict` no_node for a node that is missing or
    inactive, and no_query if no query is left.
    """
    chosen, target = set(parameters["queries"]), parameters["node"]
    if target not in {node.index for node in snapshot.nodes if node.active}:
        raise Conflict("no_node", f"Node {target} is not active any more")
    moves = [
        MoveTasks(row.id, ((target, 0, 1),))
        for row in snapshot.queries
        if row.id in chosen and row.node != target
    ]
    if not moves:
        raise Conflict("no_query", f"None of the queries runs on another node than node {target}")
    return PlannerResult(moves)


def estimate_moves(cluster: Defaults) -> Estimate:
    """Return the estimate of a manual plan: that of a planner without rounds."""
    return total([Parameters().estimate(size_of(cluster))])
