"""The linear program of load shedding (paper 003, section 3, equations 1 to 11), by HiGHS.

A program is built once for a network; other rates change bounds alone, and HiGHS continues from
the basis before.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from algorithms.errors import NotProven
from algorithms.optional import optional_module
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.problem import SheddingPlan, SheddingProblem
from algorithms.vocabulary import Floats, Parameters, Progress, silent

_INFINITY: Final = 1e30
_TOLERANCE: Final = 1e-9
# Smaller prices by the value of a flow may be rounding.
_PRICE: Final = 1e-7


@dataclass(frozen=True, eq=False)
class Optimum:
    """Optimal flows float64[d], their value, and the price of each resource, float64[r].

    `is_unique`: no other flows are optimal; False if that is not sure.
    """

    flows: Floats
    value: float
    prices: Floats
    is_unique: bool


class FlowProgram:
    """The linear program of a network, for any input rates."""

    def __init__(self, model: FlowModel) -> None:
        self.model = model
        largest = model.loads.max(axis=1).toarray() if model.loads.nnz else np.zeros(1)
        used = largest > 0
        # Flows in a unit in which the tightest resource allows about one.
        self._unit = float(np.min(model.capacities[used] / largest[used])) if used.any() else 1.0
        self._highs = self._built()

    def solve(self, rates: Floats, most: Floats | None = None) -> Optimum:
        """Return an optimum at these input rates, float64[i]. Raises `NotProven`.

        `most` float64[d]: bounds of all flows beside the rates; the prices are then no certificate
        of the value without them. With floors, no flows may be feasible: then `NotProven` is
        raised, too. A vertex is the only optimum if whatever is on its bound has a price (strict
        complementarity).
        """
        self._run(rates, most)
        solution, model = self._highs.getSolution(), self.model
        flows, columns = np.array(solution.col_value), np.array(solution.col_dual)
        rows, duals = np.array(solution.row_value), np.array(solution.row_dual)
        resources, splits = len(model.capacities), len(model.network.split_edges)
        free = _PRICE * float(np.max(model.values, initial=0.0))
        at_bound = flows <= _TOLERANCE
        at_bound[: model.inputs] |= flows[: model.inputs] >= rates / self._unit - _TOLERANCE
        tight = np.concatenate(
            [rows[:resources] >= 1 - _TOLERANCE, rows[resources : resources + splits] > -_TOLERANCE]
        )
        shared = (at_bound & (np.abs(columns) <= free)).any()
        shared |= (tight & (np.abs(duals[: len(tight)]) <= free)).any() or most is not None
        flows = np.maximum(flows, 0.0) * self._unit
        flows[: model.inputs] = np.minimum(flows[: model.inputs], rates)
        prices = np.maximum(duals[:resources], 0.0) * self._unit / model.capacities
        # Floors and covers have rows of their own.
        is_unique = not (shared or model.floors.any() or model.network.covers)
        return Optimum(flows, float(model.values @ flows), prices, is_unique)

    def _run(self, rates: Floats, most: Floats | None) -> None:
        """Solve the program at rates, within bounds of all flows."""
        model, highs = self.model, self._highs
        count = len(model.values)
        upper = np.full(count, _INFINITY) if most is None else most / self._unit
        inputs = upper[: model.inputs]
        inputs[:] = np.minimum(np.asarray(rates, np.float64) / self._unit, inputs)
        places = np.arange(count, dtype=np.int32)
        highs.changeColsBounds(count, places, np.zeros(count), upper)
        if model.floors.any():
            self._set_floors(rates)
        highs.run()
        if highs.getModelStatus().name != "kOptimal":
            raise NotProven(f"HiGHS found no optimum: {highs.getModelStatus().name}")

    def _set_floors(self, rates: Floats) -> None:
        model = self.model
        least = model.floors * (model.results @ model.unshed(rates)) / self._unit
        least[model.floors == 0] = -_INFINITY
        first = len(model.capacities) + len(model.network.split_edges)
        for output, bound in enumerate(least.tolist()):
            self._highs.changeRowBounds(first + output, bound, _INFINITY)

    def _built(self) -> Any:
        from scipy import sparse  # noqa: PLC0415 - most processes plan no shedding

        highspy = optional_module("highspy")
        model, count = self.model, len(self.model.values)
        resources, splits = len(model.capacities), len(model.network.split_edges)
        own = sparse.csr_array(
            (np.ones(splits), (np.arange(splits), model.inputs + np.arange(splits))),
            shape=(splits, count),
        )
        loads = sparse.diags_array(self._unit / model.capacities) @ model.loads
        blocks = [loads, own - model.arrivals]
        lower = np.full(resources + splits, -_INFINITY)
        upper = np.concatenate([np.ones(resources), np.zeros(splits)])
        if model.floors.any():
            blocks.append(model.results)
            lower = np.concatenate([lower, np.full(len(model.floors), -_INFINITY)])
            upper = np.concatenate([upper, np.full(len(model.floors), _INFINITY)])
        if model.network.covers:
            blocks.append(model.covers)
            lower = np.concatenate([lower, np.full(model.covers.shape[0], -_INFINITY)])
            upper = np.concatenate([upper, np.zeros(model.covers.shape[0])])
        matrix = sparse.csr_array(sparse.vstack(blocks))
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = count, matrix.shape[0]
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_ = model.values
        lp.col_lower_, lp.col_upper_ = np.zeros(count), np.full(count, _INFINITY)
        lp.row_lower_, lp.row_upper_ = lower, upper
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = matrix.indptr
        lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indices, matrix.data
        return configured_highs(lp)


def configured_highs(lp: Any) -> Any:
    """Return HiGHS with a program, for one thread, the simplex method and warm starts."""
    # `highspy.Highs` itself prints a banner before its output can be switched off.
    from highspy._core import _Highs  # noqa: PLC0415 - see above

    highs: Any = _Highs()
    settings = {
        "output_flag": False,
        "threads": 1,
        "solver": "simplex",
        # A change of bounds continues from the basis before; presolve would start again.
        "presolve": "off",
        "primal_feasibility_tolerance": _TOLERANCE,
        "dual_feasibility_tolerance": _TOLERANCE,
    }
    for name, value in settings.items():
        highs.setOptionValue(name, value)
    highs.passModel(lp)
    return highs


@dataclass(frozen=True)
class Lp(Parameters):
    """The optimum of the linear program at the given rates (section 3)."""

    def solve(self, problem: SheddingProblem, progress: Progress = silent) -> SheddingPlan:
        """Return an optimal plan. Raises `NotProven` if floors are not feasible."""
        solution = FlowProgram(problem.model).solve(problem.vector)
        progress(1.0)
        return SheddingPlan.of_flows(problem, solution.flows)
