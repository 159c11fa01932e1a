"""The fair plans along one mix of inputs that grows: the rungs of a ladder that is max-min fair.

The level of an output is the part of its results that fair plans keep. As long as the same
outputs are settled by the same resources, the levels solve linear equations: what a resource needs
for a level is proportional to the factor f, its capacity is not. So levels are affine in 1 / f in
between, and kept parts on the straight line between two rungs are feasible at every f (as in
`algorithms.shedding.rungs`) with levels on the straight line: they are fair where levels do not
bend, and lose at most `RungLadder.loss` of a part elsewhere.

Fair load shedding: max-min over outputs, and the most throughput with what that leaves free.

The share of an output is the kept part of its results over its weight. The fair plan makes the
least share as large as possible, then the least of the others, and so on (lexicographic max-min);
among such plans it has the largest weighted throughput. Floors of the network hold throughout.

Every step is a linear program: the largest t such that all outputs that are not settled have a
share of at least t. By complementary slackness an output whose row has a positive dual has the
share t in every optimum, so nothing raises it without lowering an output that is not better off; it
is settled. The duals of all rows add up to 1, so each step settles at least one output.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from algorithms.errors import NotProven, TooLarge
from algorithms.shedding.bends import fewest_chords
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.kept_parts import KeptRows, KeptSolution, maximize
from algorithms.shedding.problem import SheddingProblem
from algorithms.shedding.rungs import (
    LadderEnd,
    RungLadder,
    RungPlan,
    dropped_early,
    ladder_span,
    rung_plan,
)
from algorithms.vocabulary import Flags, Floats, Progress, silent

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


# Outputs with a weight: each may need a linear program.
MAX_OUTPUTS: Final = 1_000
_TOLERANCE: Final = 1e-9
# The least dual, of all that add up to 1, that settles an output.
_SETTLED: Final = 1e-7


@dataclass(frozen=True, eq=False)
class FairFlows:
    """Fair flows float64[d], and the least part of its results that each output keeps.

    `levels` float64[o] is the same for all fair plans.
    """

    flows: Floats
    levels: Floats


def fair_flows(model: FlowModel, rates: Floats, progress: Progress = silent) -> FairFlows:
    """Return the fair flows with the most weighted throughput at rates float64[i].

    Raises `TooLarge`, and `NotProven` if floors are not feasible or HiGHS does not solve a
    program.
    """
    rows = KeptRows.of(model, rates)
    levels = fair_levels(model, rows, progress)
    gains = model.values * rows.unshed
    solution = _solved(gains, _rows(rows), _limits(model, rows, levels), len(levels))
    if solution is None:
        raise NotProven("HiGHS did not solve the program of the throughput beside fair shares")
    return FairFlows(solution.kept * rows.unshed, levels)


def fair_levels(model: FlowModel, rows: KeptRows, progress: Progress = silent) -> Floats:
    """Return the part of its results that each output keeps at least in fair plans, float64[o].

    Of outputs without a weight the floor. Raises as `fair_flows` does.
    """
    levels = model.floors * rows.has_results
    is_open = (model.weights > 0) & (rows.has_results > 0)
    count = int(is_open.sum())
    if count > MAX_OUTPUTS:
        raise TooLarge(
            f"fair shares of {count:,} outputs need too many programs; at most {MAX_OUTPUTS:,}"
        )
    while is_open.any():
        share, is_settled = _step(model, rows, levels, is_open)
        levels[is_settled] = np.maximum(
            levels[is_settled], np.minimum(share * model.weights[is_settled], 1.0)
        )
        is_open &= ~is_settled
        progress(1 - int(is_open.sum()) / count)
    return levels


def _step(model: FlowModel, rows: KeptRows, levels: Floats, is_open: Flags) -> tuple[float, Flags]:
    """Return the largest least share of the open outputs, and which of them it settles."""
    from scipy.sparse import csr_array, hstack  # noqa: PLC0415 - fair plans are an option

    opened = np.flatnonzero(is_open)
    # The heaviest open output has a share of at most 1 / weight: in this unit, 1 / 2.
    unit = 2 / float(model.weights[opened].max())
    needs = model.weights[opened] * unit
    matrix = _stacked(-rows.results[opened], _rows(rows))
    column = np.zeros((matrix.shape[0], 1))
    column[: len(opened), 0] = needs
    limits = np.concatenate([np.zeros(len(opened)), _limits(model, rows, levels)])
    gains = np.append(np.zeros(len(rows.unshed)), 1.0)
    solution = _solved(gains, hstack([matrix, csr_array(column)]), limits, len(levels))
    if solution is None:
        raise NotProven("HiGHS found no plan that keeps the floors of all outputs")
    settled = solution.duals[: len(opened)] * needs > _SETTLED
    is_settled = np.zeros(len(levels), np.bool_)
    # Some dual is positive; should rounding hide it, no output is raised any more.
    is_settled[opened] = settled if settled.any() else True
    return solution.objective * unit, is_settled


def _solved(gains: Floats, matrix: Any, limits: Floats, levels: int) -> KeptSolution | None:
    """Return an optimum; the last rows are levels, which rounding may make infeasible."""
    solution = maximize(gains, matrix, limits)
    if solution is None:
        lower = limits.copy()
        lower[len(lower) - levels :] *= 1 - _TOLERANCE
        solution = maximize(gains, matrix, lower)
    return solution


def _rows(rows: KeptRows) -> Any:
    return _stacked(rows.loads, rows.splits, -rows.results)


def _limits(model: FlowModel, rows: KeptRows, levels: Floats) -> Floats:
    """Return the limits of `_rows` if each output keeps at least a level, float64[o]."""
    ones, zeros = np.ones(len(model.capacities)), np.zeros(rows.splits.shape[0])
    return np.concatenate([ones, zeros, -levels])


def _stacked(*blocks: Any) -> Any:
    from scipy.sparse import csr_array, vstack  # noqa: PLC0415 - see above

    return csr_array(vstack(blocks))
