"""Free assignment, beyond the paper: any task on any node, a routing table of up to m entries."""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from algorithms.errors import InfeasibleTau, NotProven
from algorithms.estimates import Estimate, ProblemSize
from algorithms.migration.feasible import smallest_tau
from algorithms.migration.limits import TOLERANCE, is_within
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.result import MigrationPlan, measure
from algorithms.optimizers import csr_array, linear_constraint, solve_milp
from algorithms.vocabulary import Floats, Ints, Parameters, Progress, SmallInts, parameter, silent

_INFEASIBLE = 2


@dataclass(frozen=True)
class Free(Parameters):
    """The fewest bytes moved without the interval rule of section 3.1: optimal or with a bound.

    Every node keeps the largest worth within its limit (a knapsack each); the rest goes to nodes
    with room, the largest first. If everything fits, it is optimal; if not, an
    integer program decides.
    """

    seconds: float = parameter(
        10.0,
        title="Time of the computation",
        unit="s",
        help="Time for the integer program, where one is needed.",
        minimum=0.1,
        maximum=3_600.0,
    )

    def estimate(self, size: ProblemSize) -> Estimate:
        """Return the estimate: it takes its whole time limit."""
        return super().estimate(size).plus(self.seconds)

    def solve(self, problem: MigrationProblem, progress: Progress = silent) -> MigrationPlan:
        """Plan one migration; `lower_bound` is the proven least cost.

        Raises `InfeasibleTau` where no assignment keeps tau, `NotProven` where none was found in
        time.
        """
        started = time.perf_counter()
        kept, worth = _kept_by_each(problem)
        nodes = _staying(problem, worth)
        bound = problem.total_state - float(worth[nodes].sum())
        assignment = _fill(problem, kept, nodes)
        if assignment is None:
            assignment, nodes, least = _by_integer_program(problem, self.seconds)
            bound = max(bound, least)
        progress(1.0)
        seconds = time.perf_counter() - started
        plan = measure(problem, assignment, nodes.tolist(), seconds)
        return replace(plan, lower_bound=min(bound, plan.cost))


def _kept_by_each(problem: MigrationProblem) -> tuple[Ints, Floats]:
    """Return each task's keeper if no node had to take any task (-1: none), and the bytes kept.

    int64[m] and float64[nodes]; no assignment keeps more on any node.
    """
    kept = np.full(problem.tasks, -1)
    worth = np.zeros(len(problem.capacities))
    for node in np.flatnonzero(problem.capacities[: problem.present] > 0):
        own = np.flatnonzero(problem.owner == node)
        limit = float(problem.limits[node])
        stays = own[_knapsack(problem.work[own], problem.state[own], limit)]
        kept[stays] = node
        worth[node] = problem.state[stays].sum()
    return kept, worth


def _knapsack(work: Floats, worth: Floats, limit: float) -> Ints:
    """Return the items of the largest worth within the limit."""
    if is_within(float(work.sum()), limit):
        return np.arange(len(work))
    result = solve_milp(
        -worth,
        1.0,
        [linear_constraint(work[None, :], upper=limit)],
        integrality=np.ones(len(work)),
    )
    return np.flatnonzero(np.asarray(result.x) > 0.5)  # noqa: PLR2004 - a rounded yes or no


def _staying(problem: MigrationProblem, worth: Floats) -> Ints:
    """Return the target nodes: of equal ones those that keep most, lowest first in a tie."""
    candidates = np.flatnonzero(problem.capacities > 0)
    order = np.lexsort((candidates, -worth[candidates]))
    return np.sort(candidates[order[: problem.nodes]])


def _fill(problem: MigrationProblem, kept: Ints, nodes: Ints) -> SmallInts | None:
    """Assign tasks without a keeper to nodes with room, largest first; None if some do not fit.

    Each goes to the node with most room, in shares of its limit.
    """
    assignment = np.where(np.isin(kept, nodes), kept, -1)
    placed = assignment >= 0
    room = problem.limits * (1 + TOLERANCE)
    room -= np.bincount(assignment[placed], problem.work[placed], len(room))
    waiting = np.flatnonzero(~placed)
    for task in waiting[np.argsort(-problem.work[waiting], kind="stable")]:
        node = nodes[np.argmax(room[nodes])]
        if room[node] < problem.work[task]:
            return None
        assignment[task] = node
        room[node] -= problem.work[task]
    return assignment.astype(np.int32)


def _by_integer_program(problem: MigrationProblem, seconds: float) -> tuple[SmallInts, Ints, float]:
    """Return an assignment, its nodes and a lower bound of the bytes moved, by HiGHS.

    x[j, i] is 1 if node i has task j, y[i] if node i stays; rows j * nodes + i, then y.
    """
    tasks, nodes = problem.tasks, len(problem.capacities)
    stays = (problem.owner[:, None] == np.arange(nodes)[None, :]) * problem.state[:, None]
    result = solve_milp(
        np.concatenate([-stays.ravel(), np.zeros(nodes)]),
        np.concatenate([np.ones(tasks * nodes), problem.capacities > 0]),
        _rules(problem),
        integrality=np.ones(tasks * nodes + nodes),
        options={"time_limit": seconds},
    )
    _check(problem, result, seconds)
    chosen = np.asarray(result.x[: tasks * nodes]).reshape(tasks, nodes)
    open_nodes = np.flatnonzero(np.asarray(result.x[tasks * nodes :]) > 0.5)  # noqa: PLR2004
    least = problem.total_state + float(result.mip_dual_bound)
    return chosen.argmax(axis=1).astype(np.int32), open_nodes, max(0.0, least)


def _rules(problem: MigrationProblem) -> list[Any]:
    """Each task on one node; no node above its limit, and none used that leaves; n' nodes stay."""
    tasks, nodes = problem.tasks, len(problem.capacities)
    cells = np.arange(tasks * nodes)
    numbers = np.arange(nodes)
    once = csr_array((np.ones(len(cells)), (cells // nodes, cells)), (tasks, len(cells) + nodes))
    values = np.concatenate([np.repeat(problem.work, nodes), -problem.limits * (1 + TOLERANCE)])
    rows = np.concatenate([cells % nodes, numbers])
    room = csr_array((values, (rows, np.arange(len(values)))), (nodes, len(values)))
    count = csr_array(np.concatenate([np.zeros(len(cells)), np.ones(nodes)])[None, :])
    return [
        linear_constraint(once, 1, 1),
        linear_constraint(room, upper=0),
        linear_constraint(count, problem.nodes, problem.nodes),
    ]


def _check(problem: MigrationProblem, result: Any, seconds: float) -> None:
    if result.status == _INFEASIBLE:
        raise InfeasibleTau(problem.nodes, problem.tau, smallest_tau(problem), "assignments")
    if result.x is None:
        raise NotProven(f"no assignment was found in {seconds:g} s; give it more time")
