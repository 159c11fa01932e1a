"""A snapshot's split queries as migration problems, and plans for them as moves of tasks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.migration.problem import MigrationProblem
from algorithms.planner import Algorithm
from controlplane.errors import Conflict
from controlplane.planning.snapshot import ClusterSnapshot

Progress = Callable[[float], None]


@dataclass(frozen=True)
class TaskMoves:
    """Moves of tasks in the words of a proposal; bytes_bound: fewer no plan of this form moves."""

    moves: list[dict[str, Any]]
    bytes_bound: float


def plan_task_moves(
    snapshot: ClusterSnapshot, algorithm: Algorithm, parameters: Any, tau: float, progress: Progress
) -> TaskMoves:
    """Spread the tasks of every split query anew over the active nodes.

    Raises `Conflict` where there is nothing to spread or nowhere, and what the algorithm raises.
    """
    split = snapshot.split
    if not split:
        raise Conflict("no_split_query", "No query with several tasks runs: nothing to spread")
    if not any(node.active for node in snapshot.nodes):
        raise Conflict("no_node", "No node of the cluster is active")
    moves: list[dict[str, Any]] = []
    bound = 0.0
    for at, query in enumerate(split):
        problem, labels = task_problem(snapshot, query, tau)
        plan = algorithm.solve(problem, parameters)
        bound += plan.lower_bound
        moves += _moves(query, problem, labels, plan.assignment)
        progress((at + 1) / len(split))
    return TaskMoves(moves, bound)


def task_problem(
    snapshot: ClusterSnapshot, query: Sequence[Any], tau: float
) -> tuple[MigrationProblem, list[int]]:
    """Return the problem of one split query, and the node index of each of its nodes.

    Its nodes are those that have tasks, in the order of these, then the other active ones; a query
    of fewer tasks than that leaves out the slowest.
    """
    _, _, spans, work, state = query
    capacity = {n.index: n.capacity if n.active else 0.0 for n in snapshot.nodes}
    holding = list(dict.fromkeys(node for node, _, _ in spans))
    others = [n for n in sorted(capacity, key=lambda n: (-capacity[n], n)) if n not in holding]
    room = max(0, len(work) - sum(capacity[node] > 0 for node in holding))
    labels = holding + [node for node in others if capacity[node] > 0][:room]
    if not any(capacity[node] > 0 for node in labels):
        raise Conflict("no_node", "No node of the cluster is active")
    owner = np.repeat(
        [labels.index(node) for node, _, _ in spans], [past - first for _, first, past in spans]
    )
    speeds = np.array([capacity[node] for node in labels])
    # What has no measure yet is spread by numbers.
    works = work if any(work) else [1.0] * len(work)
    problem = MigrationProblem.of_owner(
        works, state, owner, len(labels), int((speeds > 0).sum()), tau, speeds
    )
    return problem, labels


def _moves(
    query: Sequence[Any], problem: MigrationProblem, labels: list[int], assignment: Any
) -> list[dict[str, Any]]:
    number, name, _, _, state = query
    return [
        {
            "query": number,
            "name": name,
            "first": task,
            "past": task + 1,
            "from": labels[problem.owner[task]],
            "to": labels[assignment[task]],
            "bytes": state[task],
            "outcome": None,
            "note": "",
        }
        for task in np.flatnonzero(assignment != problem.owner).tolist()
    ]
