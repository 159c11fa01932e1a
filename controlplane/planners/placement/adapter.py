"""Adapter of the placement planner: a snapshot as its problem, plans of moves of queries.

Positions refer to all nodes of the snapshot by index; servers are the active nodes.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from algorithms.placement.improve import Goal
from algorithms.placement.improve.search import fewest_moves_labels
from algorithms.placement.planner import IMPROVE, PLANNER
from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import Ints
from controlplane.errors import Conflict
from controlplane.planners.placement.improvement import (
    NO_NODE,
    bounds_of,
    moves_of,
    plan_improvement,
)
from controlplane.planning import arrays
from controlplane.planning.adapter import PlannerAdapter, PlannerResult, PlanRequest, WatchSupport
from controlplane.planning.arrays import QueryArrays
from controlplane.planning.load_model import LoadModel
from controlplane.planning.measures import IMBALANCE
from controlplane.plans.snapshot import ClusterSnapshot

NO_WHOLE_QUERY: Final = "No query of one task is running, so there is nothing to place: submit one"


def plan_placement(request: PlanRequest) -> PlannerResult:
    """Plan an improvement, or a new placement of all queries of one task with few moves.

    Raises `Conflict` no_node or no_query, and the errors of the algorithm.
    """
    if request.algorithm.name == IMPROVE:
        return plan_improvement(request, replication_bound(request.snapshot))
    # Candidates of a comparison share a snapshot, but not the slack.
    snapshot = replace(request.snapshot, nu=request.parameters["nu"])
    servers = active_positions(snapshot)
    problem = placement_problem(snapshot, len(servers))
    plan = request.algorithm.solve(problem, request.own, request.progress)
    present = present_positions(snapshot)
    sizes = arrays.capacities_of(snapshot)
    labels = fewest_moves_labels(present, plan.assignment, np.array(servers), len(sizes), sizes)
    return PlannerResult(
        moves_of(LoadModel.of(snapshot), present, labels[plan.assignment]),
        bounds_of(_bound(problem, plan.lower_bound)),
    )


def replication_bound(snapshot: ClusterSnapshot) -> float:
    """Return the lower bound of the replication factor at the slack of the cluster.

    0 without queries of one task, records, or active nodes.
    """
    servers = len(active_positions(snapshot))
    if not servers or not snapshot.queries:
        return 0.0
    problem = placement_problem(snapshot, servers)
    return _bound(problem, problem.lower_bound(problem.caps))


def _bound(problem: PlacementProblem, traffic: float) -> float:
    """Return the bound of the replication factor, of the traffic for queries of one task.

    A record that only split queries read goes to a node at least.
    """
    total = float(problem.rates.sum())
    return max(1.0, (traffic + total - problem.live_rate) / total) if total else 0.0


def placement_problem(snapshot: ClusterSnapshot, servers: int) -> PlacementProblem:
    """Return the offline problem: the running queries on the active nodes, by their capacities.

    Caps are rounded up, so that few queries on many nodes have a plan, too (decision 0030).
    """
    if not servers:
        raise Conflict("no_node", NO_NODE)
    if not snapshot.queries:
        raise Conflict("no_query", NO_WHOLE_QUERY)
    queries = QueryArrays.of(snapshot)
    return PlacementProblem.from_arrays(
        arrays.rates_of(snapshot),
        queries.indptr,
        queries.streams,
        servers,
        snapshot.nu,
        arrays.capacities_of(snapshot)[active_positions(snapshot)],
        round_up=True,
    )


def active_positions(snapshot: ClusterSnapshot) -> list[int]:
    """Return the positions of the nodes that may host queries."""
    return [position for position, node in enumerate(snapshot.nodes) if node.active]


def present_positions(snapshot: ClusterSnapshot) -> Ints:
    """Return the node position of each query now, int64[n]."""
    return QueryArrays.of(snapshot).nodes


# The loops that ask for load on other nodes, also where no limit of placements is exceeded.
_EVEN: Final = ("latency", "node added")

ADAPTER: Final = PlannerAdapter(
    planner=PLANNER,
    default=IMPROVE,
    effect="moves of queries",
    hint="Moves queries, so that limits are kept and few streams go to several nodes.",
    plan=plan_placement,
    improves=("imbalance", "replication_factor"),
    defaults={"nu": lambda cluster: cluster.nu, "alpha": lambda cluster: cluster.alpha},
    moves_state=True,
    slacks=("nu", IMBALANCE.name),
    compared=2,
    places=True,
    watch=WatchSupport(
        frozenset({"imbalance", "replication", "latency", "overload", "node lost", "node added"}),
        order=1,
        parameters=lambda loop, _: {"goal": Goal.EVEN if loop in _EVEN else Goal.REPAIR},
    ),
)
