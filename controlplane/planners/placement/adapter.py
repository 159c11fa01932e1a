"""Adapter of the placement planner: a snapshot as its problem, plans of moves of queries.

Positions refer to all nodes of the snapshot by index; servers are the active nodes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from algorithms.optimizers import best_assignment
from algorithms.placement.planner import PLANNER
from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import Ints
from controlplane.errors import Conflict
from controlplane.models import Cluster, Query
from controlplane.planning import arrays
from controlplane.planning.adapter import (
    Missing,
    PlannerAdapter,
    PlannerResult,
    PlanRequest,
    WatchSupport,
)
from controlplane.planning.arrays import QueryArrays
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.query_actions import MoveTasks

NO_NODE: Final = "No node of the cluster is active: activate one"
NO_QUERY: Final = "No query of one task is running, so there is nothing to place: submit one"


def plan_placement(request: PlanRequest) -> PlannerResult:
    """Plan a placement of all queries of one task, with as few moves as possible.

    Raises `Conflict` no_node or no_query, and the errors of the algorithm.
    """
    # Candidates of a comparison share a snapshot, but not the slack.
    snapshot = replace(request.snapshot, nu=request.parameters["nu"])
    servers = active_positions(snapshot)
    problem = placement_problem(snapshot, len(servers))
    plan = request.algorithm.solve(problem, request.own, request.progress)
    present = present_positions(snapshot)
    sizes = arrays.capacities_of(snapshot)
    labels = fewest_moves_labels(present, plan.assignment, servers, len(sizes), sizes)
    live = problem.live_rate
    return PlannerResult(
        moves_between(snapshot, present, labels[plan.assignment]),
        {"replication_factor": plan.lower_bound / live} if live else {},
    )


def placement_problem(snapshot: ClusterSnapshot, servers: int) -> PlacementProblem:
    """Return the offline problem: the running queries on the active nodes, by their capacities.

    Caps are rounded up, so that few queries on many nodes have a plan, too (decision 0030).
    """
    if not servers:
        raise Conflict("no_node", NO_NODE)
    if not snapshot.queries:
        raise Conflict("no_query", NO_QUERY)
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


def fewest_moves_labels(
    present: Any, assignment: Any, servers: Sequence[int], nodes: int, capacities: Any = None
) -> Ints:
    """Return the node of each server of a plan, such that the fewest queries move.

    `servers`: the node of each server; `capacities` float64[nodes], equal by default. Algorithms
    number servers of equal capacity arbitrarily, so a maximum weight matching finds the numbering
    with the largest overlap with the present assignment.
    """
    known = np.asarray(servers, np.int64)
    sizes = np.ones(nodes) if capacities is None else np.asarray(capacities, np.float64)
    overlap = np.zeros((len(known), nodes), np.int64)
    np.add.at(overlap, (np.asarray(assignment), present), 1)
    labels = np.empty(len(known), np.int64)
    for size in np.unique(sizes[known]):
        equal = np.flatnonzero(sizes[known] == size)
        rows, columns = best_assignment(overlap[np.ix_(equal, known[equal])])
        labels[equal[rows]] = known[equal[columns]]
    return labels


def moves_between(snapshot: ClusterSnapshot, present: Any, planned: Any) -> list[MoveTasks]:
    """Return the moves of the queries whose node changes."""
    index = [node.index for node in snapshot.nodes]
    return [
        MoveTasks(snapshot.queries[row].id, ((index[planned[row]], 0, 1),))
        for row in np.flatnonzero(present != planned).tolist()
    ]


def missing(cluster: Cluster, _: str) -> Missing | None:
    """Return what a cluster lacks for a plan."""
    if not cluster.nodes.filter(active=True).exists():
        return Missing("no_node", NO_NODE)
    whole = cluster.queries.filter(state=Query.State.RUNNING, task_count=1)
    return None if whole.exists() else Missing("no_query", NO_QUERY)


ADAPTER: Final = PlannerAdapter(
    planner=PLANNER,
    default="mms",
    effect="moves of queries",
    hint="Moves queries of one task, so that as few streams as possible go to several nodes.",
    plan=plan_placement,
    improves=("imbalance", "replication_factor"),
    defaults={"nu": lambda cluster: cluster.nu, "alpha": lambda cluster: cluster.alpha},
    moves_state=True,
    slack="nu",
    missing=missing,
    compared=2,
    places=True,
    watch=WatchSupport(
        frozenset({"imbalance", "replication", "latency", "overload", "node lost", "node added"}),
        order=1,
    ),
)
