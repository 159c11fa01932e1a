"""Adapter of the migration planner: a problem per split query, plans of moves of tasks."""

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np

from algorithms.errors import InfeasibleTau
from algorithms.migration.planner import PLANNER
from algorithms.migration.problem import MigrationProblem
from algorithms.vocabulary import MAX_SLACK
from controlplane.errors import Conflict
from controlplane.planning.adapter import PlannerAdapter, PlannerResult, PlanRequest, WatchSupport
from controlplane.planning.load_model import LEAST_ADDED, LoadModel
from controlplane.planning.resolution import resolve
from controlplane.plans.snapshot import ClusterSnapshot, SplitQueryRow
from controlplane.wire.routing.query_actions import MoveTasks

# Half of the loop's limit, so that the plan ends well below it.
_PART: Final = 0.5
NO_SPLIT_QUERY: Final = "No query with several tasks is running: submit one with a key"


def plan_migration(request: PlanRequest) -> PlannerResult:
    """Plan a new partitioning of the tasks of every split query over the active nodes.

    Raises `Conflict` no_split_query or no_node, and the errors of the algorithm.
    """
    snapshot, split = request.snapshot, request.snapshot.split
    if not split:
        raise Conflict("no_split_query", NO_SPLIT_QUERY)
    if not any(node.active for node in snapshot.nodes):
        raise Conflict("no_node", "No node of the cluster is active")
    actions: list[MoveTasks] = []
    bound, model = 0.0, LoadModel.of(snapshot)
    for number, query in enumerate(split, start=1):
        problem, labels = task_problem(snapshot, query, float(request.parameters["tau"]), model)
        plan = _solved(request, problem)
        bound += plan.lower_bound
        moves = _moves(query, problem, labels, plan.assignment)
        model = model.after(resolve(snapshot, moves))
        actions += moves
        request.progress(number / len(split))
    return PlannerResult(actions, {"bytes": bound})


def _solved(request: PlanRequest, problem: MigrationProblem) -> Any:
    """Return the plan of a problem, as even as tasks allow that are too large for tau."""
    try:
        return request.algorithm.solve(problem, request.own)
    except InfeasibleTau as infeasible:
        least = min(MAX_SLACK, math.nextafter(infeasible.smallest, math.inf))
        return request.algorithm.solve(replace(problem, tau=least), request.own)


def task_problem(
    snapshot: ClusterSnapshot, query: SplitQueryRow, tau: float, model: LoadModel
) -> tuple[MigrationProblem, list[int]]:
    """Return the problem of one split query, and the node index of each of its nodes.

    `model`: the loads of all nodes. Each node gets work by the room that all other tasks leave, so
    that no node has more than (1 + tau) times the load at which all nodes are even. Nodes with
    tasks come first, in the order of the tasks, then the other active nodes, without the fullest
    ones if the query has fewer tasks than nodes.
    """
    ranges, work, state = query.ranges, query.work, query.state
    capacity, rate = _room(snapshot, query, model, tau)
    holding = list(dict.fromkeys(node for node, _, _ in ranges))
    others = [n for n in sorted(capacity, key=lambda n: (-capacity[n], n)) if n not in holding]
    room = max(0, len(work) - sum(capacity[node] > 0 for node in holding))
    labels = holding + [node for node in others if capacity[node] > 0][:room]
    if not any(capacity[node] > 0 for node in labels):
        raise Conflict("no_node", "No node of the cluster is active")
    owner = np.repeat(
        [labels.index(node) for node, _, _ in ranges], [stop - first for _, first, stop in ranges]
    )
    speeds = np.array([capacity[node] for node in labels])
    # Without measures, tasks count equally.
    works = work if any(work) else [1.0] * len(work)
    # Work up to the room of each node, which is more than its share of the work.
    uneven = max(tau, float(speeds.sum()) / rate - 1) if rate else tau
    uneven = min(uneven, MAX_SLACK)
    problem = MigrationProblem.of_owner(
        works, state, owner, len(labels), int((speeds > 0).sum()), uneven, speeds
    )
    return problem, labels


def _room(
    snapshot: ClusterSnapshot, query: SplitQueryRow, model: LoadModel, tau: float
) -> tuple[dict[int, float], float]:
    """Return the records/s for which the nodes have room, by index, and those of the query.

    A node that already receives a part of the records has room for more of them, and one that
    receives them all for every task. Nodes that other tasks load more than the even load have
    none; inactive nodes neither.
    """
    capacity = {node.index: node.capacity if node.active else 0.0 for node in snapshot.nodes}
    left = model.without(query.id)
    rate, parts = left.added_parts(query.streams)
    if not rate:
        return capacity, rate
    active = [place for place, index in enumerate(model.indices.tolist()) if capacity[index]]
    added, capacities = parts[active], model.capacities[active]
    others = np.maximum(0.0, left.loads[active])
    # The fullest nodes are left out until all others take the work at one level.
    order = np.argsort(others / capacities)
    level = 0.0
    for count in range(1, len(order) + 1):
        taken = order[:count]
        of_work = 1 / added[taken]
        level = float((others[taken] @ of_work + rate) / (capacities[taken] @ of_work))
        if count == len(order) or level <= (others / capacities)[order[count]]:
            break
    room = np.maximum(0.0, (1 + tau) * level * capacities - others) / added
    room[added <= LEAST_ADDED] = rate
    rooms = dict(zip(model.indices[active].tolist(), room.tolist(), strict=True))
    return capacity | rooms, rate


def _moves(
    query: SplitQueryRow, problem: MigrationProblem, labels: list[int], assignment: Any
) -> list[MoveTasks]:
    return [
        MoveTasks(query.id, ((labels[assignment[task]], task, task + 1),))
        for task in np.flatnonzero(assignment != problem.owner).tolist()
    ]


ADAPTER: Final = PlannerAdapter(
    planner=PLANNER,
    default="single_step",
    effect="moves of tasks",
    hint="Moves tasks of split queries with their state, so that nodes are balanced.",
    plan=plan_migration,
    improves=("imbalance",),
    moves_state=True,
    slacks=("tau",),
    watch=WatchSupport(
        frozenset({"imbalance", "latency", "overload", "node lost", "node added"}),
        order=0,
        parameters=lambda _, imbalance: {"tau": max(0.01, min(1.0, _PART * imbalance))},
    ),
)
