"""The optimal plans along one mix of inputs that grows: the rungs of a ladder (paper 003, 3).

V(f) is the optimal weighted throughput at rates f x base. Rates, and floors times the results
without drops, stand only on the right-hand side of the linear program, so V is concave and
piecewise linear, and if y and z are optimal flows at f and g, then (1 - t) y + t z is feasible at
h = (1 - t) f + t g, with the value (1 - t) V(f) + t V(g). Where V is linear from f to g that is
V(h): the flows on the straight line are optimal, also where the basis changes in between.

The kept part of a location, its flow over its flow without drops, is x = y / (f u), so at h it is
a weighted mean of those at f and g, with the weights (1 - t) f / h and t g / h: on the straight
line between the two vectors of kept parts, affine in 1 / h. That holds for inputs and split edges
alike, behind any number of splits and unions, and for all of them with the same weights. Hence the
linear interpolation between the kept parts of neighbouring rungs passes through optimal plans only.

Optimal plans need not drop more at every location as the input grows. Example: A is full, and
stream 1, which uses A alone, is dropped for stream 2, which uses A and B. Later B is full with a
better stream 3, stream 2 is dropped, and A has room for stream 1 again (tests have the numbers).
`plan_rungs` chooses plans that drop at least what the rung before drops wherever such a plan is
optimal.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.errors import BadProblem, NotProven
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.kept_parts import KeptRows, maximize
from algorithms.shedding.lp import FlowProgram
from algorithms.shedding.network import check_number
from algorithms.shedding.problem import Outcome, SheddingProblem, outcome_of, trimmed
from algorithms.vocabulary import Floats

MAX_RUNGS: Final = 64
# Linear programs per ladder; the parts with the largest possible loss are refined first.
MAX_SOLVES: Final = 300
# Relative differences of values that count as rounding.
_ROUNDING: Final = 1e-11
# Relative distance to the factor at which floors become infeasible, above HiGHS' tolerance.
_MARGIN: Final = 1e-7
_TINY: Final = 1e-300


class LadderEnd(StrEnum):
    """Why a ladder ends: no resource is full up to the largest factor, it reaches that, or floors.

    `FLOORS`: no plan keeps the floors of all outputs beyond the last rung.
    """

    NO_OVERLOAD = "no_overload"
    MAX_FACTOR = "max_factor"
    FLOORS = "floors"


@dataclass(frozen=True)
class RungPlan:
    """An optimal plan at rates `factor` x base.

    `kept`: of each drop location the part of its records without drops that is kept up to and
    including there, 1 if there are none; so not the fraction of what arrives there.
    """

    factor: float
    kept: Mapping[str, float]
    outcome: Outcome


@dataclass(frozen=True)
class RungLadder:
    """Rungs by ascending factor; nothing is dropped on the first, on which a resource is full.

    `loss`: the largest part of the optimal value that interpolated plans lose anywhere between
    the rungs, except for rounding.
    """

    rungs: tuple[RungPlan, ...]
    end: LadderEnd
    loss: float

    def kept(self, factor: float) -> Mapping[str, float]:
        """Return the kept part of each location at a factor; empty if there are no rungs.

        Beyond the last rung the flows stay as they are there: feasible, except for floors, but
        not always optimal.
        """
        if not self.rungs:
            return {}
        first, last = self.rungs[0], self.rungs[-1]
        if factor <= first.factor:
            return first.kept
        if factor >= last.factor:
            return {name: part * last.factor / factor for name, part in last.kept.items()}
        above = next(index for index, rung in enumerate(self.rungs) if rung.factor > factor)
        low, high = self.rungs[above - 1], self.rungs[above]
        share = (1 / low.factor - 1 / factor) / (1 / low.factor - 1 / high.factor)
        return {name: part + share * (high.kept[name] - part) for name, part in low.kept.items()}


def plan_rungs(
    problem: SheddingProblem, max_factor: float, *, most: int = 12, loss: float = 1e-3
) -> RungLadder:
    """Return the ladder along the mix of the problem's rates, up to `max_factor` times them.

    Rungs stand where V bends. It has the fewest of them with which interpolated plans lose at most
    `loss` of the optimal value, and never more than `most`; then `RungLadder.loss` is the least
    that so many allow. Raises `BadProblem`, and `NotProven` if HiGHS does not solve a program.
    """
    check_number("max_factor", max_factor, above_zero=True)
    check_number("loss", loss)
    if not 2 <= most <= MAX_RUNGS:  # noqa: PLR2004 - a first and a last rung
        raise BadProblem("most", f"must be from 2 to {MAX_RUNGS}, not {most}")
    _scaled(problem, max_factor)
    model, base = problem.model, problem.vector
    first = first_full_factor(model, base)
    if first >= max_factor:
        return RungLadder((), LadderEnd.NO_OVERLOAD, 0.0)
    last, end = _end(model, base, max_factor)
    program = FlowProgram(model)
    bends = _Bends(program, base)
    points = bends.points(first, max(first, last))
    kept, lost = _thinned(points, most, max(loss, 10 * _ROUNDING))
    return RungLadder(tuple(_plans(problem, program, kept)), end, lost + bends.unresolved)


def first_full_factor(model: FlowModel, base: Floats) -> float:
    """Return the least factor of the rates float64[i] at which a resource is full, or infinity."""
    loads = model.loads @ model.unshed(base)
    used = loads > 0
    if not used.any():
        return float("inf")
    # Infinity is right if a load is almost zero.
    with np.errstate(over="ignore"):
        return float(np.min(model.capacities[used] / loads[used]))


def last_feasible_factor(model: FlowModel, base: Floats) -> float:
    """Return the largest factor of the rates float64[i] at which all floors can be kept.

    With flows over factor the rates are fixed, and capacities are divided by the factor: the
    least 1 / factor is a linear program. Raises `NotProven` if HiGHS does not solve it.
    """
    from scipy.sparse import csr_array, hstack, vstack  # noqa: PLC0415 - few ladders have floors

    first = first_full_factor(model, base)
    rows = KeptRows.of(model, first * base)
    least = model.floors * rows.has_results
    # Columns: kept parts, then `first` over the factor, which is at most 1.
    kept = vstack([rows.loads, rows.splits, -rows.results])
    last = np.zeros((kept.shape[0], 1))
    last[: len(model.capacities)] = -1.0
    limits = np.zeros(len(last))
    limits[len(limits) - len(least) :] = -least
    gains = np.append(np.zeros(len(rows.unshed)), -1.0)
    solution = maximize(gains, hstack([kept, csr_array(last)]), limits)
    if solution is None:
        raise NotProven("HiGHS did not find the largest factor at which floors are feasible")
    return first / -solution.objective if solution.objective < 0 else float("inf")


def _end(model: FlowModel, base: Floats, max_factor: float) -> tuple[float, LadderEnd]:
    if not model.floors.any():
        return max_factor, LadderEnd.MAX_FACTOR
    last = last_feasible_factor(model, base)
    if last >= max_factor:
        return max_factor, LadderEnd.MAX_FACTOR
    return last * (1 - _MARGIN), LadderEnd.FLOORS


class _Point(NamedTuple):
    """V at a factor: its value, a slope of V there, and optimal flows float64[d]."""

    factor: float
    value: float
    slope: float
    flows: Floats


class _Interval(NamedTuple):
    """Two points: minus the largest relative loss of their chord, and where their lines meet."""

    minus_loss: float
    order: int
    factor: float
    bound: float
    left: _Point
    right: _Point


class _Bends:
    """Finds where V bends: the lines at two factors meet at a bend, or V is below them there.

    `unresolved`: bound of the relative loss between the points because of `MAX_SOLVES`.
    """

    def __init__(self, program: FlowProgram, base: Floats) -> None:
        self._program, self._base = program, base
        self.unresolved = 0.0

    def points(self, first: float, last: float) -> list[_Point]:
        """Return points by ascending factor, among them all bends of V from first to last.

        Nothing is dropped at the first, where the slope is the value without drops.
        """
        flows = self._program.model.unshed(first * self._base)
        value = float(self._program.model.values @ flows)
        start = _Point(first, value, value / first, flows)
        if last <= first * (1 + _MARGIN):
            return [start]
        points = [start, self._solved(last)]
        queue = [_interval(0, *points)]
        while queue and -queue[0].minus_loss > _ROUNDING:
            if len(points) >= MAX_SOLVES:
                self.unresolved = -queue[0].minus_loss
                break
            item = heapq.heappop(queue)
            middle = self._solved(item.factor)
            points.append(middle)
            if middle.value < item.bound - _ROUNDING * abs(item.bound):
                order = 2 * len(points)
                heapq.heappush(queue, _interval(order, item.left, middle))
                heapq.heappush(queue, _interval(order + 1, middle, item.right))
        return sorted(points, key=lambda point: point.factor)

    def _solved(self, factor: float) -> _Point:
        model = self._program.model
        solution = self._program.solve(factor * self._base)
        # V = prices x capacities + what is proportional to the factor: rates and floors.
        slope = (solution.value - float(solution.prices @ model.capacities)) / factor
        return _Point(factor, solution.value, slope, solution.flows)


def _interval(order: int, left: _Point, right: _Point) -> _Interval:
    width = right.factor - left.factor
    bend = left.slope - right.slope
    chord = (right.value - left.value) / width
    if bend <= 0 or width <= _ROUNDING * right.factor:
        return _Interval(0.0, order, left.factor, left.value, left, right)
    rise = width * min(1.0, max(0.0, (chord - right.slope) / bend))
    bound = left.value + left.slope * rise
    loss = max(0.0, (left.slope - chord) * rise / max(bound, _TINY))
    return _Interval(-loss, order, left.factor + rise, bound, left, right)


def _thinned(points: list[_Point], most: int, loss: float) -> tuple[list[_Point], float]:
    """Return the fewest points between which chords lose at most `loss`, and what they lose.

    A chord from i to j loses more the farther j is, V being concave, so the farthest j that is
    allowed is best. With more than `most` points the loss that is allowed is the least at which
    there are so many.
    """
    factors = np.array([point.factor for point in points])
    values = np.array([point.value for point in points])
    lost = _losses(factors, values)
    chosen = _farthest(lost, loss)
    if len(chosen) > most:
        levels = np.unique(lost)
        low, high = int(np.searchsorted(levels, loss)), len(levels) - 1
        while low < high:
            middle = (low + high) // 2
            fits = len(_farthest(lost, float(levels[middle]))) <= most
            low, high = (low, middle) if fits else (middle + 1, high)
        chosen = _farthest(lost, float(levels[low]))
    worst = max((float(lost[i, j]) for i, j in pairwise(chosen)), default=0.0)
    return [points[index] for index in chosen], worst


@compiled
def _losses(factors: Floats, values: Floats) -> Floats:
    """Return the largest relative loss of the chord from point i to j > i, float64[n, n]."""
    count = len(factors)
    lost = np.zeros((count, count))
    for i in range(count):
        for j in range(i + 2, count):
            slope = (values[j] - values[i]) / (factors[j] - factors[i])
            for k in range(i + 1, j):
                chord = values[i] + slope * (factors[k] - factors[i])
                lost[i, j] = max(lost[i, j], (values[k] - chord) / max(values[k], _TINY))
    return lost


def _farthest(lost: Floats, loss: float) -> list[int]:
    chosen = [0]
    while chosen[-1] < len(lost) - 1:
        allowed = np.flatnonzero(lost[chosen[-1]] <= loss)
        chosen.append(int(allowed[-1]))
    return chosen


def _plans(problem: SheddingProblem, program: FlowProgram, points: list[_Point]) -> list[RungPlan]:
    """Return the plans of points, each with no more kept than the one before if that is optimal."""
    model, result = program.model, list[RungPlan]()
    before = np.ones(len(model.values))
    for point in points:
        rates = point.factor * problem.vector
        unshed = model.unshed(rates)
        flows = point.flows
        if result:
            capped = _capped(program, rates, before * unshed)
            if float(model.values @ capped) >= point.value * (1 - 10 * _ROUNDING):
                flows = capped
        keep = dict(zip(model.network.locations, model.keep(flows, rates).tolist(), strict=True))
        # The first rung drops nothing, not even records that no output needs.
        early = trimmed(model.network, keep) if result else keep
        flows = model.flows(np.array(list(early.values())), rates)
        before = np.divide(flows, unshed, out=np.ones(len(flows)), where=unshed > 0)
        kept = dict(zip(model.network.locations, before.tolist(), strict=True))
        outcome = outcome_of(_scaled(problem, point.factor), early)
        result.append(RungPlan(point.factor, kept, outcome))
    return result


def _capped(program: FlowProgram, rates: Floats, most: Floats) -> Floats:
    """Return the best flows within bounds; zeros if no flows within them keep the floors."""
    try:
        return program.solve(rates, most).flows
    except NotProven:
        return np.zeros(len(most))


def _scaled(problem: SheddingProblem, factor: float) -> SheddingProblem:
    rates = {name: factor * rate for name, rate in problem.rates.items()}
    return SheddingProblem(problem.network, rates)
