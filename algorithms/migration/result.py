"""The plan of a migration planner."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from algorithms.migration.limits import is_within
from algorithms.migration.problem import MigrationProblem
from algorithms.vocabulary import Floats, SmallInts


class Interval(NamedTuple):
    """Consecutive tasks [first, stop) of one node; empty where both are equal."""

    node: int
    first: int
    stop: int


@dataclass(frozen=True, eq=False)
class MigrationPlan:
    """The node of every task after a migration, with its measures.

    `assignment` int32[m]. `nodes`: the n' target nodes, ascending. `intervals`: runs of tasks in
    position order, then the target nodes without tasks; a routing table has one entry per run.
    `cost`: bytes of the tasks that change their node. `gain`: bytes that stay. `loads` float64:
    work of each node. `max_load`: the largest. `feasible`: whether every load keeps its limit.
    `lower_bound`: bytes that no assignment of the same form within the limits undercuts, 0 where
    nothing better is known. `seconds`: time the algorithm took, by the wall clock.
    """

    assignment: SmallInts
    nodes: tuple[int, ...]
    intervals: tuple[Interval, ...]
    cost: float
    gain: float
    loads: Floats
    max_load: float
    feasible: bool
    lower_bound: float
    seconds: float


def measure_assignment(
    problem: MigrationProblem, assign: Callable[[], tuple[SmallInts, Iterable[int]]]
) -> MigrationPlan:
    """Time `assign`, which returns the node of each task and the target nodes; measure that."""
    started = time.perf_counter()
    assignment, nodes = assign()
    return measure(problem, assignment, nodes, time.perf_counter() - started)


def measure(
    problem: MigrationProblem, assignment: SmallInts, nodes: Iterable[int], seconds: float
) -> MigrationPlan:
    """Measure an assignment of the tasks to target nodes."""
    targets = tuple(sorted(int(node) for node in nodes))
    moved = assignment != problem.owner
    cost = math.fsum(problem.state[moved])
    loads = np.bincount(assignment, problem.work, len(problem.capacities)).astype(np.float64)
    for array in (assignment, loads):
        array.setflags(write=False)
    return MigrationPlan(
        assignment=assignment,
        nodes=targets,
        intervals=runs(assignment, targets),
        cost=cost,
        gain=math.fsum(problem.state[~moved]),
        loads=loads,
        max_load=float(loads.max()),
        feasible=all(
            is_within(load, limit) for load, limit in zip(loads, problem.limits, strict=True)
        ),
        lower_bound=0.0,
        seconds=seconds,
    )


def runs(assignment: SmallInts, nodes: Iterable[int]) -> tuple[Interval, ...]:
    """Return the runs of consecutive tasks on one node, then the nodes that have none."""
    tasks = len(assignment)
    edges = np.flatnonzero(np.diff(assignment)) + 1
    firsts, stops = np.concatenate([[0], edges]), np.append(edges, tasks)
    intervals = [
        Interval(int(assignment[first]), int(first), int(stop))
        for first, stop in zip(firsts, stops, strict=True)
    ]
    idle = sorted(set(nodes) - {run.node for run in intervals})
    return (*intervals, *(Interval(node, tasks, tasks) for node in idle))
