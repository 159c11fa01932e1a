"""A snapshot as a placement problem, and a plan as moves and measures of nodes.

Positions count all nodes of the snapshot by index; servers are the active ones among them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from algorithms.placement.planner import PlacementAlgorithm, PlacementParameters
from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import Ints
from controlplane.errors import Conflict
from controlplane.planning import arrays
from controlplane.planning.arrays import QueryArrays
from controlplane.planning.snapshot import ClusterSnapshot


@dataclass(frozen=True)
class Planned:
    """A plan in the words of a proposal.

    lower_bound is one of the replication factor; bytes_bound one of the bytes that move.
    """

    moves: list[dict[str, Any]]
    lower_bound: float | None = None
    bytes_bound: float | None = None


def plan_moves(
    snapshot: ClusterSnapshot,
    algorithm: PlacementAlgorithm,
    parameters: PlacementParameters,
    progress: Callable[[float], None],
) -> Planned:
    """Run the algorithm on the snapshot and say what would move and what it would bring.

    Raises `Conflict` where there is nothing to place or nowhere, and what the algorithm raises.
    """
    servers = active_positions(snapshot)
    problem = placement_problem(snapshot, len(servers))
    plan = algorithm.solve(problem, parameters, progress)
    present = present_positions(snapshot)
    sizes = arrays.capacities_of(snapshot)
    labels = fewest_moves_labels(present, plan.assignment, servers, len(sizes), sizes)
    return Planned(
        moves=moves_between(snapshot, present, labels[plan.assignment]),
        lower_bound=plan.lower_bound / problem.live_rate if problem.live_rate else None,
    )


def placement_problem(snapshot: ClusterSnapshot, servers: int) -> PlacementProblem:
    """Return the offline problem: the running queries on the active nodes, by their capacities.

    Caps are rounded up, so that few queries on many nodes have a plan, too (decision 0030).
    """
    if not servers:
        raise Conflict("no_node", "No node of the cluster is active")
    if not snapshot.queries:
        raise Conflict("no_query", "No query runs, so there is nothing to place")
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
    """Return which node each of the plan's servers should be, so that fewest queries move.

    `servers`: the node that each server is; `capacities` float64[nodes], equal if not given. An
    algorithm numbers servers of equal capacity arbitrarily; among these the numbering with the
    largest overlap with the present assignment is a maximum weight matching.
    """
    known = np.asarray(servers, np.int64)
    sizes = np.ones(nodes) if capacities is None else np.asarray(capacities, np.float64)
    overlap = np.zeros((len(known), nodes), np.int64)
    np.add.at(overlap, (np.asarray(assignment), present), 1)
    labels = np.empty(len(known), np.int64)
    for size in np.unique(sizes[known]):
        equal = np.flatnonzero(sizes[known] == size)
        rows, columns = linear_sum_assignment(overlap[np.ix_(equal, known[equal])], maximize=True)
        labels[equal[rows]] = known[equal[columns]]
    return labels


def moves_between(snapshot: ClusterSnapshot, present: Any, planned: Any) -> list[dict[str, Any]]:
    """Return the queries whose node changes, as a proposal keeps them."""
    index = [node.index for node in snapshot.nodes]
    return [
        {
            "query": snapshot.queries[row][0],
            "name": snapshot.queries[row][1],
            "from": index[present[row]],
            "to": index[planned[row]],
            "outcome": None,
            "note": "",
        }
        for row in np.flatnonzero(present != planned).tolist()
    ]
