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

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np

from algorithms.errors import BadProblem, NotProven
from algorithms.shedding.bends import MARGIN, ROUNDING, Bends, Point, thinned
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.kept_parts import KeptRows, maximize
from algorithms.shedding.lp import FlowProgram
from algorithms.shedding.network import check_number
from algorithms.shedding.problem import SheddingOutcome, SheddingProblem, trimmed
from algorithms.vocabulary import Floats

MAX_RUNGS: Final = 64


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
    outcome: SheddingOutcome


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

    It has the fewest rungs with which interpolated plans lose at most `loss` of the optimal value,
    and never more than `most`; then `RungLadder.loss` is the least that so many allow. If V has
    too many bends to compute all, that holds within about 10 % of the loss. With a `loss` of 0,
    rungs stand where V bends.

    Raises `BadProblem`, and `NotProven` if HiGHS does not solve a program.
    """
    model, base = problem.model, problem.vector
    span = ladder_span(problem, max_factor, most, loss)
    if span.end is LadderEnd.NO_OVERLOAD:
        return RungLadder((), span.end, 0.0)
    program = FlowProgram(model)
    bends = Bends(program, base)
    points = bends.points(span.first, span.last, most, loss)
    kept, lost = thinned(points, most, loss - bends.unresolved)
    return RungLadder(tuple(_plans(problem, program, kept)), span.end, lost + bends.unresolved)


class LadderSpan(NamedTuple):
    """The factors of the first and the last rung, and why there is no later one."""

    first: float
    last: float
    end: LadderEnd


def ladder_span(problem: SheddingProblem, max_factor: float, most: int, loss: float) -> LadderSpan:
    """Return the factors between which rungs are needed, after a check of all arguments.

    Raises `BadProblem`, and `NotProven` if HiGHS does not solve the program of the floors.
    """
    check_number("max_factor", max_factor, above_zero=True)
    check_number("loss", loss)
    if not 2 <= most <= MAX_RUNGS:  # noqa: PLR2004 - a first and a last rung
        raise BadProblem("most", f"must be from 2 to {MAX_RUNGS}, not {most}")
    _scaled(problem, max_factor)
    first = first_full_factor(problem.model, problem.vector)
    if first >= max_factor:
        return LadderSpan(first, first, LadderEnd.NO_OVERLOAD)
    last, end = _end(problem.model, problem.vector, max_factor)
    return LadderSpan(first, max(first, last), end)


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
    return last * (1 - MARGIN), LadderEnd.FLOORS


def _plans(problem: SheddingProblem, program: FlowProgram, points: list[Point]) -> list[RungPlan]:
    """Return the plans of points, each with no more kept than the one before if that is optimal."""
    model, result = program.model, list[RungPlan]()
    before = np.ones(len(model.network.locations))
    for point in points:
        rates = point.factor * problem.vector
        unshed = model.unshed(rates)
        flows = point.flows
        if result:
            flows = _capped(program, point, rates, before * unshed)
            flows = dropped_early(model, flows, rates)
        # The first rung drops nothing, not even records that no output needs.
        result.append(rung_plan(problem, point.factor, flows))
        before = np.array(list(result[-1].kept.values()))
    return result


def dropped_early(model: FlowModel, flows: Floats, rates: Floats) -> Floats:
    """Return flows float64[d] with equal results that drop as early as possible."""
    names = model.network.locations
    keep = dict(zip(names, model.keep(flows, rates).tolist(), strict=True))
    flows = model.flows(np.array(list(trimmed(model.network, keep).values())), rates)
    return model.covered(flows)


def rung_plan(problem: SheddingProblem, factor: float, flows: Floats) -> RungPlan:
    """Return the rung of flows float64[d] at a factor of the problem's rates."""
    model = problem.model
    unshed = model.unshed(factor * problem.vector)
    kept = np.divide(flows, unshed, out=np.ones(len(flows)), where=unshed > 0).tolist()
    names = model.network.locations
    return RungPlan(factor, dict(zip(names, kept, strict=True)), _outcome(model, flows, unshed))


def _capped(program: FlowProgram, point: Point, rates: Floats, most: Floats) -> Floats:
    """Return the flows of a point, or others within bounds that are optimal, too."""
    if point.is_unique:
        return point.flows
    try:
        best = program.solve(rates, most)
    except NotProven:
        # No flows within the bounds keep the floors.
        return point.flows
    return best.flows if best.value >= point.value * (1 - 10 * ROUNDING) else point.flows


def _outcome(model: FlowModel, flows: Floats, unshed: Floats) -> SheddingOutcome:
    """Return what flows give, by the linear equations."""
    network, results, full = model.network, model.results @ flows, model.results @ unshed
    kept = np.divide(results, full, out=np.ones(len(full)), where=full > 0)
    return SheddingOutcome(
        float(model.weights @ results),
        dict(zip(network.resources, (model.loads @ flows).tolist(), strict=True)),
        dict(zip(network.outputs, results.tolist(), strict=True)),
        dict(zip(network.outputs, kept.tolist(), strict=True)),
    )


def _scaled(problem: SheddingProblem, factor: float) -> SheddingProblem:
    rates = {name: factor * rate for name, rate in problem.rates.items()}
    return SheddingProblem(problem.network, rates)
