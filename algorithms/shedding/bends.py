"""Points on the optimal value along a mix of inputs that grows, and chords that lose little of it.

V is the optimal value by the factor of the rates: concave and piecewise linear, from linear
programs. Tangents bound V from above, chords from below. A network of 10,000 queries has thousands
of bends; only as many points are computed as rungs of a given loss need.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.shedding.lp import FlowProgram
from algorithms.vocabulary import Floats

# Linear programs per ladder; the parts with the largest possible loss are refined first.
MAX_SOLVES: Final = 300
# Relative differences of values that count as rounding.
ROUNDING: Final = 1e-11
# Relative distance to the factor at which floors become infeasible, above HiGHS' tolerance.
MARGIN: Final = 1e-7
# V is known to this part of the loss of the chosen chords.
_PRECISION: Final = 0.05
# Programs before the first refinement.
_FIRST: Final = 8
# Of the largest loss: intervals that may lose less wait for the next pass.
_WAITING: Final = 0.1
# Of the curve between two points, for the choice of rungs there.
_PIECES: Final = 4
_TINY: Final = 1e-300


class Point(NamedTuple):
    """V at a factor: its value, a slope of V there, and optimal flows float64[d].

    `is_unique`: no other flows are optimal.
    """

    factor: float
    value: float
    slope: float
    flows: Floats
    is_unique: bool


@dataclass(frozen=True, eq=False)
class _Interval:
    """Two points: the largest relative loss of their chord, and where their tangents meet."""

    loss: float
    factor: float
    bound: float
    left: Point
    right: Point


class Bends:
    """Searches for the bends of V: the tangents of two points meet at a bend, or V is below.

    `unresolved`: bound of what V may be above the chords of neighbouring points, relative to it.
    """

    def __init__(self, program: FlowProgram, base: Floats) -> None:
        self._program, self._base = program, base
        self.unresolved = 0.0
        # The factor of the program before.
        self._before = float("inf")

    def points(self, first: float, last: float, most: int, loss: float) -> list[Point]:
        """Return points from first to last, for `thinned` to choose from.

        They include all bends if `loss` is 0 and V has less than `MAX_SOLVES`. Nothing is dropped
        at the first point, where the slope is the value without drops.
        """
        flows = self._program.model.unshed(first * self._base)
        value = float(self._program.model.values @ flows)
        points = [Point(first, value, value / first, flows, is_unique=False)]
        if last <= first * (1 + MARGIN):
            return points
        points += self._sweep(np.geomspace(last, first, _FIRST + 1)[:-1].tolist())
        points.sort(key=lambda point: point.factor)
        intervals = [_interval(left, right) for left, right in pairwise(points)]
        while True:
            self.unresolved = max((item.loss for item in intervals), default=0.0)
            chosen = thinned(points, most, loss)[1]
            enough = max(ROUNDING, _PRECISION * max(loss, chosen))
            if self.unresolved <= enough or len(points) >= MAX_SOLVES:
                return points + self._between(points, most, loss)
            wide = _widest(intervals, enough, MAX_SOLVES - len(points))
            intervals = [item for item in intervals if item not in wide]
            middles = {point.factor: point for point in self._sweep([i.factor for i in wide])}
            for item in wide:
                middle = middles[item.factor]
                if middle.value < item.bound - ROUNDING * abs(item.bound):
                    intervals += [_interval(item.left, middle), _interval(middle, item.right)]
            points = sorted([*points, *middles.values()], key=lambda point: point.factor)

    def _between(self, points: list[Point], most: int, loss: float) -> list[Point]:
        """Return the points that a smooth curve through the others suggests as rungs."""
        if self.unresolved <= ROUNDING:
            return []
        factors, values = _curve(points)
        chosen, _ = _choice(factors, values, most, loss - self.unresolved)
        known = {point.factor for point in points}
        return self._sweep(sorted({float(factors[index]) for index in chosen} - known))

    def _sweep(self, factors: list[float]) -> list[Point]:
        """Return V at monotone factors: from the end that is nearer to the program before.

        The solver continues from the optimum before: its steps are the bends in between.
        """
        if not factors:
            return []
        low, high = min(factors), max(factors)
        is_falling = abs(high - self._before) <= abs(low - self._before)
        return [self._solved(factor) for factor in sorted(factors, reverse=is_falling)]

    def _solved(self, factor: float) -> Point:
        model = self._program.model
        best = self._program.solve(factor * self._base)
        self._before = factor
        # V = prices x capacities + what is proportional to the factor: rates and floors.
        slope = (best.value - float(best.prices @ model.capacities)) / factor
        return Point(factor, best.value, slope, best.flows, best.is_unique)


def _widest(intervals: list[_Interval], enough: float, most: int) -> list[_Interval]:
    """Return at most so many intervals, with the largest losses above `enough`."""
    rows = sorted(intervals, key=lambda item: -item.loss)[:most]
    least = max(enough, _WAITING * rows[0].loss)
    return [item for item in rows if item.loss > least]


def _interval(left: Point, right: Point) -> _Interval:
    width = right.factor - left.factor
    bend = left.slope - right.slope
    chord = (right.value - left.value) / width
    if bend <= 0 or width <= ROUNDING * right.factor:
        return _Interval(0.0, left.factor, left.value, left, right)
    rise = width * min(1.0, max(0.0, (chord - right.slope) / bend))
    bound = left.value + left.slope * rise
    loss = max(0.0, (left.slope - chord) * rise / max(bound, _TINY))
    return _Interval(loss, left.factor + rise, bound, left, right)


def _curve(points: Sequence[Point]) -> tuple[Floats, Floats]:
    """Return factors and values of the cubic pieces with the values and slopes of points."""
    factors, values, slopes = (
        np.array(row)[:, None] for row in zip(*(point[:3] for point in points), strict=True)
    )
    share = np.arange(_PIECES) / _PIECES
    width = np.diff(factors, axis=0)
    rise, chord = np.diff(values, axis=0), share * (1 - share) * width
    first = slopes[:-1] - rise / width
    last = slopes[1:] - rise / width
    curve = values[:-1] + share * rise + chord * ((1 - share) * first - share * last)
    inner = (factors[:-1] + share * width).ravel(), curve.ravel()
    return np.append(inner[0], factors[-1]), np.append(inner[1], values[-1])


def thinned(points: Sequence[Point], most: int, loss: float) -> tuple[list[Point], float]:
    """Return the fewest points between which chords lose at most `loss`, and what they lose.

    With more than `most` points the loss that is allowed is the least at which there are so many.
    """
    rows = sorted(points, key=lambda point: point.factor)
    factors, values = (np.array([row[column] for row in rows]) for column in range(2))
    chosen, worst = _choice(factors, values, most, loss)
    return [rows[index] for index in chosen], worst


def _choice(factors: Floats, values: Floats, most: int, loss: float) -> tuple[list[int], float]:
    """Return what `thinned` returns, by index.

    A chord from i to j loses more the farther j is, V being concave.
    """
    return fewest_chords(_losses(factors, values), most, loss)


def fewest_chords(lost: Floats, most: int, loss: float) -> tuple[list[int], float]:
    """Return the points between which chords lose at most `loss`, by index, and what they lose.

    `lost`: by the chord from point i to j > i, float64[n, n]. It grows with j, so the farthest j
    that is allowed is best. With more than `most` points the loss that is allowed is the least at
    which there are so many.
    """
    loss = max(loss, 10 * ROUNDING)
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
    return chosen, worst


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
