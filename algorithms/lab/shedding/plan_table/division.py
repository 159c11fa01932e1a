"""The division of a rate space into boxes of small error (paper 003, sections 5.1 and 5.2)."""

import heapq
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from algorithms.errors import BadProblem, TooLarge
from algorithms.lab.shedding.plan_table.rate_distributions import RateDistribution
from algorithms.lab.shedding.plan_table.rate_space import MAX_NUMBERS, RateSpace
from algorithms.lab.shedding.plan_table.region_quadtree import Corner, RegionQuadtree
from algorithms.lab.shedding.plan_table.table import PlanTable
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.lp import FlowProgram
from algorithms.vocabulary import Floats, Progress, silent

MAX_BOXES: Final = 500_000
# Rates of the corners of boxes, some 500 MB with the optima that are known by corner.
MAX_COORDINATES: Final = 2_000_000
DEFAULT_VALUES: Final = 100_000
MAX_VALUES: Final = 5_000_000


class Optimum(Protocol):
    """An optimal plan at some rates: its value, and its flows float64[d]."""

    @property
    def value(self) -> float:
        """Return the weighted results."""
        ...

    @property
    def flows(self) -> Floats:
        """Return what each drop location keeps."""
        ...


# Returns the optimum at rates float64[i]; the flows are read for some of the points only.
Oracle = Callable[[Floats], Optimum]
# Returns the oracle of a network.
OracleMaker = Callable[[FlowModel], Oracle]
# Receives the number of LP values so far and the error reached, after each division.
Observer = Callable[[int, float], None]


class FlowOptimum(NamedTuple):
    """An optimum without its certificate, so that many of them need little memory."""

    value: float
    flows: Floats


def lp_oracle(model: FlowModel) -> Oracle:
    """Return the oracle that solves the linear program, each from the basis before."""
    program = FlowProgram(model)

    def solve(rates: Floats) -> FlowOptimum:
        solution = program.solve(rates)
        return FlowOptimum(solution.value, solution.flows)

    return solve


def build_table(
    model: FlowModel,
    bounds: Any,
    epsilon: float,
    *,
    distribution: RateDistribution | None = None,
    oracle: OracleMaker = lp_oracle,
    lp_values: int = DEFAULT_VALUES,
    observe: Observer | None = None,
    progress: Progress = silent,
) -> PlanTable:
    """Return a table of plans for rates up to bounds [i] with an error of at most `epsilon`.

    Without a distribution, no box has a larger percent error (Solver); with one, the mean over the
    boxes within the bounds is not larger (Solver-W). `oracle` returns the optima at points, by
    default of the linear program; `lp_values`: the most points at which it is evaluated.

    Raises `BadProblem` on bounds that are none, a network with floors, and a distribution of other
    inputs or without probability within the bounds; `TooLarge` if the table needs more boxes, plans
    or LP values than allowed; `NotProven` if HiGHS does not solve a program.
    """
    if not 0 < epsilon <= 1:
        raise BadProblem("epsilon", f"must be above 0 and at most 1, not {epsilon}")
    if distribution is not None and distribution.inputs != model.inputs:
        why = f"must be of {model.inputs:,} inputs, not {distribution.inputs:,}"
        raise BadProblem("distribution", why)
    space = RateSpace(model, bounds)
    division = _Division(space, oracle(model), distribution, lp_values)
    division.run(epsilon, observe, progress)
    return division.table()


class _Division:
    def __init__(
        self,
        space: RateSpace,
        oracle: Oracle,
        distribution: RateDistribution | None,
        lp_values: int,
    ) -> None:
        self._space, self._oracle, self._distribution = space, oracle, distribution
        self._tree = RegionQuadtree(space.extent)
        self._most, self._computed = lp_values, 0
        # Optima by corner; of feasible corners the value alone.
        self._optima: dict[Corner, Optimum | float] = {}
        self._errors: list[float] = []
        # Boxes with an error, the one to divide next first: its negative error, its number.
        self._queue: list[tuple[float, int]] = []
        self._total = 0.0
        self._coverage = 1.0
        if distribution is not None:
            self._coverage = float(self._probabilities(distribution, range(1))[0])
            if not self._coverage > 0:
                raise BadProblem("distribution", "has no probability within the bounds")
        self._add(range(1))

    def run(self, epsilon: float, observe: Observer | None, progress: Progress) -> None:
        """Divide the box with the largest error until the error is at most epsilon."""
        first = error = self._error(epsilon)
        while error > epsilon:
            progress(math.log(first / error) / math.log(first / epsilon))
            if observe is not None:
                observe(self._computed, error)
            negative, box = heapq.heappop(self._queue)
            self._total += negative
            self._check_boxes()
            self._add(self._tree.divide(box))
            # The error of a part is never larger; only the optima are rounded.
            error = min(error, self._error(epsilon))
        if observe is not None:
            observe(self._computed, error)
        progress(1.0)

    def table(self) -> PlanTable:
        """Return the table of the boxes so far."""
        shared = [box for box in self._tree.leaves() if not self._is_feasible(box)]
        flows = np.empty((len(shared), len(self._space.model.values)))
        for row, box in enumerate(shared):
            flows[row] = self._flows(self._tree.bottom(box))
        return PlanTable(
            self._space,
            self._tree,
            flows,
            {box: row for row, box in enumerate(shared)},
            np.array([self._errors[box] for box in shared], np.float64),
            self._computed,
            self._distribution,
        )

    def _add(self, boxes: range) -> None:
        """Compute the errors of new boxes and queue those with an error."""
        errors = [self._error_of(box) for box in boxes]
        self._errors.extend(errors)
        weighted = errors
        if self._distribution is not None:
            parts = self._probabilities(self._distribution, boxes) / self._coverage
            weighted = (parts * errors).tolist()
        for box, error in zip(boxes, weighted, strict=True):
            if error > 0:
                heapq.heappush(self._queue, (-error, box))
        self._total += sum(weighted)

    def _error(self, epsilon: float) -> float:
        """Return the error of the space: the largest of a box, or the mean."""
        if not self._queue:
            return 0.0
        if self._distribution is None:
            return -self._queue[0][0]
        if self._total <= epsilon:
            # The running sum has rounding errors; the end needs the exact one.
            self._total = self._expected_error()
        return self._total

    def _expected_error(self) -> float:
        return math.fsum(-negative for negative, _ in self._queue)

    def _error_of(self, box: int) -> float:
        """Return by which part the plan of a box is at most below the optimum in the box."""
        top = self._optimum(self._tree.top(box))
        if isinstance(top, float) or top.value <= 0:
            return 0.0
        bottom = self._optimum(self._tree.bottom(box))
        least = bottom if isinstance(bottom, float) else bottom.value
        return min(1.0, max(0.0, (top.value - least) / top.value))

    def _optimum(self, corner: Corner) -> Optimum | float:
        """Return the optimum at a corner; only the value if nothing is dropped there."""
        known = self._optima.get(corner)
        if known is None:
            rates = self._space.full(self._tree.rates(corner))
            if self._space.is_feasible(rates):
                known = self._space.unshed_value(rates)
            else:
                known = self._computed_optimum(rates)
            self._optima[corner] = known
        return known

    def _computed_optimum(self, rates: Floats) -> Optimum:
        if self._computed >= self._most:
            raise self._too_large("the allowed LP values (lp_values)")
        self._computed += 1
        if self._computed * len(self._space.model.values) > MAX_NUMBERS:
            raise self._too_large(f"plans with {MAX_NUMBERS:,} flows")
        return self._oracle(rates)

    def _too_large(self, what: str) -> TooLarge:
        error = -self._queue[0][0] if self._distribution is None and self._queue else self._total
        return TooLarge(
            f"the table of plans needs more than {what}; the error before the last division is "
            f"about {error:.3g}; raise epsilon, or lower the bounds of the rates"
        )

    def _check_boxes(self) -> None:
        """Raise `TooLarge` unless one more box may be divided."""
        dimensions = len(self._space.dimensions)
        most = min(MAX_BOXES, MAX_COORDINATES // max(1, dimensions))
        if len(self._tree) + (1 << dimensions) > most:
            raise self._too_large(f"{most:,} boxes")

    def _is_feasible(self, box: int) -> bool:
        return isinstance(self._optimum(self._tree.top(box)), float)

    def _flows(self, corner: Corner) -> Floats:
        optimum = self._optimum(corner)
        if isinstance(optimum, float):
            return self._space.model.unshed(self._space.full(self._tree.rates(corner)))
        return optimum.flows

    def _probabilities(self, distribution: RateDistribution, boxes: range) -> Floats:
        """Return the probability of each box, float64[b]."""
        low, stop = self._space.full_intervals(*self._tree.intervals(boxes))
        return distribution.probabilities(low, stop)
