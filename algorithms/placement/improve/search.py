"""Improvement of a running placement: searches at several prices of a move, and the best of all.

They start from the present placement, and from the plans of other algorithms.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from algorithms.errors import PlanningError
from algorithms.estimates import Estimate, ProblemSize
from algorithms.optimizers import best_assignment
from algorithms.placement.improve.annealing import Prices, SearchSchedule, anneal
from algorithms.placement.improve.board import change, lay_out, move
from algorithms.placement.improve.descent import Preference, descend, is_better
from algorithms.placement.improve.problem import ImproveProblem, Measured
from algorithms.placement.offline import Mms
from algorithms.placement.online import LeastCost
from algorithms.placement.problem import PlacementProblem
from algorithms.random_numbers import new_state
from algorithms.rows import pick_rows
from algorithms.vocabulary import (
    MAX_SEED,
    Floats,
    Ints,
    Parameters,
    Progress,
    SmallInts,
    parameter,
    silent,
)


class Goal(StrEnum):
    """What a plan improves once it has lowered what exceeds a limit as far as it can.

    Repair: the cost, traffic and moves together. The plan of a goal never makes its measure worse,
    and none raises a measure above its limit or further above.
    """

    REPAIR = "repair"
    TRAFFIC = "traffic"
    EVEN = "even"
    FEW_MOVES = "few_moves"


_TITLES: Final = {
    Goal.REPAIR: "End what exceeds a limit, at the least cost",
    Goal.TRAFFIC: "Less traffic",
    Goal.EVEN: "Even load",
    Goal.FEW_MOVES: "Fewest moves",
}
# A move is worth so many times the rate of all streams over the number of units; next to nothing
# where a goal asks for no cost but that of its measure.
_FREE: Final = 0.02
# A repair moves a little more for less traffic: its plans then have at most the traffic of the best
# plans of other algorithms on average.
_REPAIR: Final = 0.7
_PRICES: Final = (_FREE, 1.0, 2.0, 4.0, 8.0)
# A repaired measure stays so far below its limit where that is worth its moves.
_MARGIN: Final = 0.1
# A plan may end at a limit; a search that aims at it ends above as often as below.
_BELOW: Final = 0.99
_SCHEDULES: Final = (
    SearchSchedule(0.3, 0.0, 4.0),
    SearchSchedule(0.3, 0.5, 16.0),
    SearchSchedule(1.0, 0.5, 16.0),
    # Where few large streams make one node the fullest whatever moves.
    SearchSchedule(0.3, 0.0, 16.0, mean=1.0),
)
_AFTERWARDS: Final = SearchSchedule(0.1, 0.0, 16.0)
# For plans within a budget, too.
_DEARER: Final = (16.0, 32.0, 64.0, 128.0)
# The parts of the allowed imbalance at which searches for an even load aim.
_PARTS: Final = (0.9, 0.5, 0.25, 0.1, 0.0)
# Tried moves of one search: by unit, at least and at most.
_TRIES: Final = (2_000, 20_000, 1_500_000)
_LEAST: Final = 1e-9


class CurvePoint(NamedTuple):
    """What so many moves reach."""

    moves: int
    measured: Measured


@dataclass(frozen=True, eq=False)
class Improvement:
    """A better placement: `assignment` int32[u]; its measures, and those at the start.

    The start is the present placement after the moves that must be. `curve`: what fewer moves
    reach and what more do, by their number; each point is better than those before it.
    """

    assignment: SmallInts
    start: Measured
    measured: Measured
    curve: Sequence[CurvePoint]


@dataclass(frozen=True)
class Improve(Parameters):
    """The running placement, improved by few moves within the limits of the policy.

    Local searches from it and from the plans of other algorithms, whose moves count as well. The
    plan is never worse than the present placement.
    """

    goal: str = parameter(
        Goal.REPAIR.value,
        help="What the plan improves once no limit is exceeded, or none less.",
        choices={goal.value: title for goal, title in _TITLES.items()},
    )
    imbalance: float | None = parameter(
        None,
        title="Imbalance, at most",
        help="Of the plan, as a share of capacity; empty: the limit of the policy.",
        minimum=0.0,
        maximum=100.0,
    )
    seconds: float = parameter(
        60.0,
        title="Search time",
        unit="s",
        help="After it, the plan is the best one so far.",
        minimum=0.0,
        maximum=3600.0,
    )
    seed: int = parameter(
        0, help="Same seed, same plan, if the search time is enough.", minimum=0, maximum=MAX_SEED
    )

    def estimate(self, size: ProblemSize) -> Estimate:
        """Return the estimate: the tried moves of all searches, and readers by stream and node."""
        searches = len(_PRICES) * len(_SCHEDULES)
        took = min(self.seconds, 4e-7 * searches * _tries(size.queries))
        return super().estimate(size).plus(took, 8.0 * size.streams * size.nodes)

    def solve(self, problem: ImproveProblem, progress: Progress = silent) -> Improvement:
        """Return the best placement of all searches, the present one where none is better."""
        if self.imbalance is not None:
            problem = replace(problem, limits=problem.limits._replace(imbalance=self.imbalance))
        return _Search(problem, Goal(self.goal), self.seed, self.seconds).best(progress)


def _tries(units: int) -> int:
    each, least, most = _TRIES
    return max(least, min(most, each * units))


class _Candidate(NamedTuple):
    """A placement, its moves, and how good it is: smaller is better from the front on."""

    score: Floats
    hosts: SmallInts
    moves: int


class _Search:
    """The searches of one improvement."""

    def __init__(self, problem: ImproveProblem, goal: Goal, seed: int, seconds: float) -> None:
        self._goal, self._seed, self._end = goal, seed, time.monotonic() + seconds
        self._begin = evacuated(problem)
        self._start = problem.measured(self._begin)
        self._problem, self._most = problem.by_budget(self._begin)
        self._unit = problem.live / max(1, problem.units)
        self._order = self._order_of_goal()

    def _order_of_goal(self) -> Preference:
        limits, goal, unit = self._problem.limits, self._goal, self._unit
        caps = limits.not_below(self._start)
        if goal is Goal.TRAFFIC:
            caps = caps._replace(replication=self._start.replication)
        if goal is Goal.EVEN:
            caps = caps._replace(imbalance=self._start.imbalance)
        weights = {
            Goal.REPAIR: (1.0, 0.0, _REPAIR * unit, unit * self._problem.units),
            Goal.TRAFFIC: (1.0, 0.0, _FREE * unit, 0.0),
            Goal.EVEN: (_FREE * _FREE, unit * self._problem.units, _FREE * _FREE * unit, 0.0),
            Goal.FEW_MOVES: (_LEAST, 0.0, unit, 0.0),
        }[goal]
        bounds = np.maximum(np.array(limits), _LEAST)
        aims = (1 - _MARGIN) * bounds
        allowed = np.maximum(np.array([*caps, self._most]), _LEAST)
        return Preference(bounds, allowed, aims, np.array(weights))

    def _runs(self) -> Iterator[tuple[Prices, SearchSchedule]]:
        """Yield the searches from the present placement."""
        limit, allowed = self._problem.limits.imbalance, self._order.caps[1]
        for target in (limit, (limit + allowed) / 2)[: 1 + (allowed > limit)]:
            free = self._goal in (Goal.EVEN, Goal.TRAFFIC) or not self._problem.costs.any()
            prices = (_FREE,) if free else _PRICES
            for price in prices if target == limit else (_FREE,):
                for schedule in _SCHEDULES:
                    yield self._prices(price, target), schedule
        if self._most < np.inf:
            yield from ((self._prices(price, limit), _SCHEDULES[1]) for price in _DEARER)
        if self._goal is Goal.EVEN:
            for part in _PARTS:
                for schedule in _SCHEDULES[:2]:
                    yield self._prices(_FREE, part * min(limit, self._start.imbalance)), schedule

    def _prices(self, price: float, imbalance: float) -> Prices:
        fullest = _BELOW * self._problem.limits.fullest
        return Prices(price * self._unit, _BELOW * imbalance, fullest)

    def best(self, progress: Progress) -> Improvement:
        """Return the best placement of all searches."""
        candidates = [self._descended(self._begin)]
        if self._problem.movable.any() and self._problem.open.any():
            candidates += self._searched(progress)
        progress(1.0)
        best = candidates[0]
        for other in candidates[1:]:
            if is_better(other.score, best.score):
                best = other
        return Improvement(
            best.hosts, self._start, self._problem.measured(best.hosts), self._curve(candidates)
        )

    def _searched(self, progress: Progress) -> Iterator[_Candidate]:
        runs = [(self._begin, *run) for run in self._runs()]
        prices = self._prices(_FREE, self._problem.limits.imbalance)
        others = ((start, prices, _AFTERWARDS) for start in other_plans(self._problem))
        for number, (start, weights, schedule) in enumerate(chain(runs, others), start=1):
            if time.monotonic() > self._end:
                return
            board = lay_out(self._problem, start)
            tries = _tries(len(board.units))
            anneal(board, weights, schedule, tries, new_state(self._seed))
            yield self._descended(board.hosts)
            progress(number / (len(runs) + MOST_OTHERS + 1))

    def _descended(self, hosts: SmallInts) -> _Candidate:
        board = lay_out(self._problem, hosts)
        score = descend(board, self._order, self._problem.live)
        return _Candidate(score, board.hosts, int((board.hosts != self._problem.present).sum()))

    def _curve(self, candidates: Sequence[_Candidate]) -> list[CurvePoint]:
        """Return the placements that are better than all with fewer moves, by their moves."""
        moves = [item.moves for item in candidates]
        curve: list[CurvePoint] = []
        best = None
        for place in np.argsort(moves, kind="stable").tolist():
            item = candidates[place]
            if item.score[0] == 0 and (best is None or is_better(item.score, best)):
                best = item.score
                curve = [point for point in curve if point.moves < moves[place]]
                curve.append(CurvePoint(moves[place], self._problem.measured(item.hosts)))
        return curve


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
