"""Placements from which searches start besides the present one."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from algorithms.errors import PlanningError
from algorithms.optimizers import best_assignment
from algorithms.placement.improve.board import change, lay_out, move
from algorithms.placement.improve.problem import ImproveProblem
from algorithms.placement.offline import Mms
from algorithms.placement.online import LeastCost
from algorithms.placement.problem import PlacementProblem
from algorithms.rows import pick_rows
from algorithms.vocabulary import Floats, Ints, SmallInts

# The count of units per node that the algorithms bound in the place of load.
_SLACKS: Final = (0.1, 0.5)
# The number of plans at most: two algorithms at each slack.
MOST_OTHERS: Final = 2 * len(_SLACKS)
# More take minutes.
_MOST_UNITS: Final = 20_000


def evacuated(problem: ImproveProblem) -> SmallInts:
    """Return the present placement with the units that must move on the nodes with most room.

    The largest loads first; each goes where the fullest of the nodes stays the least full.
    """
    board = lay_out(problem, problem.present)
    leaving = np.flatnonzero(problem.leaving)
    amounts = problem.parts * problem.rates[problem.indices]
    work = np.bincount(problem.owners, amounts, problem.units)
    for unit in leaving[np.argsort(-work[leaving], kind="stable")].tolist():
        slots = slice(problem.indptr[unit], problem.indptr[unit + 1])
        read, complete = problem.indices[slots], problem.is_complete[slots, None]
        added = np.where(complete, board.added[read], amounts[slots, None])
        more = (added * (board.counts[read] == 0)).sum(axis=0)
        shares = (board.loads + more) / problem.capacities
        target = int(board.targets[np.argmin(shares[board.targets])])
        home = int(board.hosts[unit])
        rates, indptr, indices, parts = board.rates, board.indptr, board.indices, board.parts
        less, more = change(
            unit, home, target, rates, indptr, indices, parts, board.counts, board.added
        )
        move(
            unit, home, target, less, more, rates, indptr, indices, parts, board.hosts,
            board.counts, board.loads, board.added,
        )  # fmt: skip
    return board.hosts


def other_plans(problem: ImproveProblem) -> Iterator[SmallInts]:
    """Yield plans of other algorithms, with their servers named so that few units move.

    They place the movable units that read all of their streams, on the open nodes, by their
    numbers.
    """
    complete = np.bincount(problem.owners, problem.is_complete, problem.units)
    units = np.flatnonzero(problem.movable & (complete > 0))
    nodes = np.flatnonzero(problem.open)
    if not len(units) or len(units) > _MOST_UNITS:
        return
    indptr, entries = pick_rows(problem.indptr, units)
    for slack in _SLACKS:
        placement = PlacementProblem.from_arrays(
            problem.rates, indptr, problem.indices[entries], len(nodes), slack,
            problem.capacities[nodes], round_up=True,
        )  # fmt: skip
        for algorithm in (LeastCost(nu=slack, alpha=0.0), Mms()):
            try:
                plan = algorithm.solve(placement)
            except PlanningError:
                continue
            hosts = evacuated(problem)
            names = fewest_moves_labels(
                problem.present[units], plan.assignment, nodes, problem.nodes, problem.capacities
            )
            hosts[units] = names[plan.assignment]
            yield hosts


def fewest_moves_labels(
    present: Ints | SmallInts,
    assignment: Ints | SmallInts,
    servers: Ints,
    nodes: int,
    capacities: Floats,
) -> Ints:
    """Return the node of each server of a plan, such that the fewest queries move.

    `servers`: the node of each server; `capacities` float64[nodes]. Algorithms number servers of
    equal capacity arbitrarily, so a maximum weight matching finds the numbering with the largest
    overlap with the present assignment.
    """
    overlap = np.zeros((len(servers), nodes), np.int64)
    np.add.at(overlap, (assignment, present), 1)
    labels = np.empty(len(servers), np.int64)
    for size in np.unique(capacities[servers]):
        equal = np.flatnonzero(capacities[servers] == size)
        rows, columns = best_assignment(overlap[np.ix_(equal, servers[equal])])
        labels[equal[rows]] = servers[equal[columns]]
    return labels
