"""Manual plans: moves of queries to a node that a person has chosen, as actions on a snapshot."""

from collections.abc import Mapping
from typing import Any, Final

from algorithms.estimates import Estimate, total
from algorithms.vocabulary import Parameters
from controlplane.errors import Conflict
from controlplane.planning.adapter import Defaults, PlannerResult
from controlplane.planning.estimates import size_of
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.query_actions import MoveTasks

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
