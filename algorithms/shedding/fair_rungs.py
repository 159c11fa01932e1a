"""The fair plans along one mix of inputs that grows: the rungs of a ladder that is max-min fair.

The level of an output is the part of its results that fair plans keep. As long as the same
outputs are settled by the same resources, the levels solve linear equations: what a resource needs
for a level is proportional to the factor f, its capacity is not. So levels are affine in 1 / f in
between, and kept parts on the straight line between two rungs are feasible at every f (as in
`algorithms.shedding.rungs`) with levels on the straight line: they are fair where levels do not
bend, and lose at most `RungLadder.loss` of a part elsewhere.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from algorithms.shedding.bends import fewest_chords
from algorithms.shedding.fairness import fair_flows
from algorithms.shedding.problem import SheddingProblem
from algorithms.shedding.rungs import (
    LadderEnd,
    RungLadder,
    RungPlan,
    dropped_early,
    ladder_span,
    rung_plan,
)
from algorithms.vocabulary import Floats

# Fair plans per ladder: each needs several linear programs.
MAX_PLANS: Final = 60
# Of the difference between the inverse factors of the first and the last rung: bends are not
# searched for between points that are nearer.
_NEAREST: Final = 1e-3


class _Point(NamedTuple):
    """Fair flows float64[d] at a factor, by 1 / factor; levels float64[o] of weighted outputs."""

    inverse: float
    flows: Floats
    levels: Floats


def plan_fair_rungs(
    problem: SheddingProblem, max_factor: float, *, most: int = 12, loss: float = 1e-3
) -> RungLadder:
    """Return the fair ladder along the mix of the problem's rates, up to `max_factor` times them.

    It has the fewest rungs with which the level of no output is more than `loss` below the fair
    one at the computed points, never more than `most`: then `RungLadder.loss` is what they lose.

    Raises `BadProblem`, `TooLarge` with too many outputs, and `NotProven` if HiGHS does not solve
    a program.
    """
    span = ladder_span(problem, max_factor, most, loss)
    if span.end is LadderEnd.NO_OVERLOAD:
        return RungLadder((), span.end, 0.0)
    model, base = problem.model, problem.vector

    # Outputs without a weight have a level, their floor, only where something is dropped.
    weighted = np.flatnonzero((model.weights > 0) & (model.results @ model.unshed(base) > 0))

    def fair_point(inverse: float) -> _Point:
        fair = fair_flows(model, base / inverse)
        return _Point(inverse, fair.flows, fair.levels[weighted])

    # At the first factor nothing is dropped, not even records that no output needs.
    unshed = model.unshed(base * span.first)
    points = [_Point(1 / span.first, unshed, np.ones(len(weighted)))]
    if span.last > span.first:
        points = _searched([*points, fair_point(1 / span.last)], fair_point, loss)
    inverses = np.array([point.inverse for point in points])
    levels = np.array([point.levels for point in points])
    chosen, lost = fewest_chords(_losses(inverses, levels), most, loss)
    plans: list[RungPlan] = []
    for point in (points[index] for index in chosen):
        flows, factor = point.flows, 1 / point.inverse
        if plans:
            flows = dropped_early(model, flows, factor * base)
        plans.append(rung_plan(problem, factor, flows))
    return RungLadder(tuple(plans), span.end, lost)


def _searched(
    points: Sequence[_Point], fair_point: Callable[[float], _Point], loss: float
) -> list[_Point]:
    """Return points between which levels are straight up to `loss`, from the first factor on.

    Halves the intervals in the order of what their middle showed to be bent.
    """
    first, last = points
    nearest = _NEAREST * (first.inverse - last.inverse)
    waiting = [(float("inf"), first, last)]
    result = [first, last]
    while waiting and len(result) < MAX_PLANS:
        waiting.sort(key=lambda item: item[0])
        _, left, right = waiting.pop()
        middle = fair_point((left.inverse + right.inverse) / 2)
        result.append(middle)
        chord = (left.levels + right.levels) / 2
        bent = float(np.abs(middle.levels - chord).max(initial=0.0))
        if bent > loss / 2 and left.inverse - right.inverse > nearest:
            waiting += [(bent, left, middle), (bent, middle, right)]
    return sorted(result, key=lambda point: -point.inverse)


def _losses(inverses: Floats, levels: Floats) -> Floats:
    """Return what the chord from point i to j > i loses of a level at most, float64[n, n].

    `levels`: float64[n, o]. The largest loss up to j, so that it grows with j.
    """
    count = len(inverses)
    lost = np.zeros((count, count))
    for i in range(count):
        for j in range(i + 2, count):
            share = (inverses[i] - inverses[i + 1 : j]) / (inverses[i] - inverses[j])
            chord = levels[i] + share[:, None] * (levels[j] - levels[i])
            lost[i, j] = max(lost[i, j - 1], float((levels[i + 1 : j] - chord).max(initial=0.0)))
    return lost
