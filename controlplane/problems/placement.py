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
from controlplane.errors import Conflict


@dataclass(frozen=True)
class Planned:
    """A plan in the words of a proposal.

    lower_bound is one of the replication factor; bytes_bound one of the bytes that move.
    """

    moves: list[dict[str, Any]]
    lower_bound: float | None = None
    bytes_bound: float | None = None


def plan_moves(
    snapshot: dict[str, Any],
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
    labels = fewest_moves_labels(present, plan.assignment, servers, len(snapshot["nodes"]))
    return Planned(
        moves=moves_between(snapshot, present, labels[plan.assignment]),
        lower_bound=plan.lower_bound / problem.live_rate if problem.live_rate else None,
    )


def placement_problem(snapshot: dict[str, Any], servers: int) -> PlacementProblem:
    """Return the offline problem: the running queries on the active nodes."""
    if not servers:
        raise Conflict("no_node", "No node of the cluster is active")
    if not snapshot["queries"]:
        raise Conflict("no_query", "No query runs, so there is nothing to place")
    sources = {stream: source for source, (stream, _) in enumerate(snapshot["streams"])}
    return PlacementProblem.from_lists(
        [rate for _, rate in snapshot["streams"]],
        [[sources[stream] for stream in streams] for _, _, _, streams in snapshot["queries"]],
        servers,
        snapshot["nu"],
    )


def active_positions(snapshot: dict[str, Any]) -> list[int]:
    """Return the positions of the nodes that may host queries."""
    return [position for position, node in enumerate(snapshot["nodes"]) if node["active"]]


def present_positions(snapshot: dict[str, Any]) -> Any:
    """Return the node position of each query now, int64[n]."""
    positions = {node["index"]: position for position, node in enumerate(snapshot["nodes"])}
    return np.array([positions[node] for _, _, node, _ in snapshot["queries"]], np.int64)


def fewest_moves_labels(present: Any, assignment: Any, servers: Sequence[int], nodes: int) -> Any:
    """Return which node each of the plan's servers should be, so that fewest queries move.

    An algorithm numbers equal servers arbitrarily; the numbering with the largest overlap with
    the present assignment is a maximum weight matching.
    """
    overlap = np.zeros((len(servers), nodes), np.int64)
    np.add.at(overlap, (np.asarray(assignment), present), 1)
    rows, columns = linear_sum_assignment(overlap[:, servers], maximize=True)
    labels = np.empty(len(servers), np.int64)
    labels[rows] = np.asarray(servers)[columns]
    return labels


def moves_between(snapshot: dict[str, Any], present: Any, planned: Any) -> list[dict[str, Any]]:
    """Return the queries whose node changes, as a proposal keeps them."""
    index = [node["index"] for node in snapshot["nodes"]]
    return [
        {
            "query": snapshot["queries"][row][0],
            "name": snapshot["queries"][row][1],
            "from": index[present[row]],
            "to": index[planned[row]],
            "outcome": None,
            "note": "",
        }
        for row in np.flatnonzero(present != planned).tolist()
    ]


def received_rates(problem: PlacementProblem, positions: Any, nodes: int) -> list[float]:
    """Return f(Q_j) of the placement paper (section 2) per node: each stream counts once."""
    owner = np.repeat(positions, np.diff(problem.indptr))
    received = np.zeros((nodes, len(problem.rates)), bool)
    received[owner, problem.indices] = True
    rates: list[float] = (received * problem.rates).sum(axis=1).tolist()
    return rates
