"""Progressive migration, section 5.2: many small steps instead of a large one."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from algorithms.errors import BadParameters
from algorithms.lab.migration.schedule import Schedule, schedule_transfers
from algorithms.migration.limits import is_within
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.result import MigrationPlan
from algorithms.vocabulary import Floats


class Move(NamedTuple):
    """One task's way from node to node, with its work and the bytes of its state."""

    task: int
    source: int
    target: int
    work: float
    size: float


@dataclass(frozen=True)
class Step:
    """Moves that are made together; the load of every node afterwards, float64.

    `schedule`: the transfers of the step in phases. `balanced`: whether the loads are within the
    bound; a node above it before the migration only has to be no worse than it was.
    """

    moves: tuple[Move, ...]
    loads: Floats
    schedule: Schedule
    balanced: bool


def moves_of(problem: MigrationProblem, plan: MigrationPlan) -> tuple[Move, ...]:
    """Return the tasks that change their node, in task order."""
    return tuple(
        Move(
            int(task),
            int(problem.owner[task]),
            int(plan.assignment[task]),
            float(problem.work[task]),
            float(problem.state[task]),
        )
        for task in np.flatnonzero(plan.assignment != problem.owner)
    )


def progressive(problem: MigrationProblem, plan: MigrationPlan, most_in: int) -> tuple[Step, ...]:
    """Cut a migration into steps with at most `most_in` tasks moving into a node in each.

    Every step takes what relieves the fullest nodes first, as long as no node ends above its bound
    (or above its load before the migration, if that was more). Where no single move keeps
    that, two nodes exchange tasks; where no exchange does either, the move that exceeds the bound
    least is made and its step is marked as not balanced. Raises `BadParameters`.
    """
    if most_in < 1:
        raise BadParameters({"most_in": [f"must be at least 1, not {most_in}"]})
    left = list(moves_of(problem, plan))
    loads = np.bincount(problem.owner, problem.work, len(problem.capacities)).astype(np.float64)
    bounds = np.maximum(problem.limits, loads)
    steps = []
    while left:
        chosen, loads = _step(left, loads, bounds, most_in)
        left = [move for move in left if move not in chosen]
        balanced = all(is_within(load, bound) for load, bound in zip(loads, bounds, strict=True))
        steps.append(Step(tuple(chosen), loads, _schedule(chosen, len(loads)), balanced))
    return tuple(steps)


def _step(
    left: Sequence[Move], loads: Floats, bounds: Floats, most_in: int
) -> tuple[list[Move], Floats]:
    """Choose the moves of the next step; return them with the loads afterwards."""
    loads, arrived = loads.copy(), Counter[int]()
    chosen: list[Move] = []
    waiting = list(left)
    while True:
        open_moves = [move for move in waiting if arrived[move.target] < most_in]
        group = _single(open_moves, loads, bounds) or _exchange(open_moves, loads, bounds)
        if not group and not chosen:
            group = [min(open_moves, key=lambda move: _excess(move, loads, bounds))]
        if not group:
            return chosen, loads
        for move in group:
            loads[move.source] -= move.work
            loads[move.target] += move.work
            arrived[move.target] += 1
            waiting.remove(move)
        chosen += group


def _single(moves: Sequence[Move], loads: Floats, bounds: Floats) -> list[Move]:
    """Return the fitting move from the node that is fullest for its bound, the largest one."""
    fitting = [move for move in moves if _excess(move, loads, bounds) <= 0]
    if not fitting:
        return []
    return [max(fitting, key=lambda move: (_fullness(move.source, loads, bounds), move.size))]


def _exchange(moves: Sequence[Move], loads: Floats, bounds: Floats) -> list[Move]:
    """Return two moves in opposite directions that fit together but not alone."""
    by_way: dict[tuple[int, int], list[Move]] = {}
    for move in moves:
        by_way.setdefault((move.source, move.target), []).append(move)
    for (source, target), there in by_way.items():
        for first in there:
            for back in by_way.get((target, source), []):
                grown = loads[target] + first.work - back.work
                shrunk = loads[source] - first.work + back.work
                if is_within(grown, bounds[target]) and is_within(shrunk, bounds[source]):
                    return [first, back]
    return []


def _excess(move: Move, loads: Floats, bounds: Floats) -> float:
    """Return by how much a move alone would raise its target above the bound; 0 if it fits."""
    load = float(loads[move.target] + move.work)
    bound = float(bounds[move.target])
    return 0.0 if is_within(load, bound) else load - bound


def _fullness(node: int, loads: Floats, bounds: Floats) -> float:
    return float(loads[node] / bounds[node]) if bounds[node] else np.inf


def _schedule(moves: Sequence[Move], nodes: int) -> Schedule:
    amounts = np.zeros((nodes, nodes))
    for move in moves:
        amounts[move.source, move.target] += move.size
    return schedule_transfers(amounts)
