"""The basis of an optimum of the linear program, from which those of other rates follow."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.optional import optional_module
from algorithms.shedding.lp import FlowProgram
from algorithms.vocabulary import Flags, Floats


@dataclass(frozen=True, eq=False)
class FlowSolution:
    """An optimum: flows float64[d] and their value, with its certificate.

    `prices` float64[r]: value per unit of a resource; `split_prices` float64[s]: value per record
    that arrives at a split edge; `input_prices` float64[i]: value per record of an input. So the
    value at any rates r is at most prices @ capacities + input_prices @ r. `is_full`: whether a
    location keeps all in the basis; `is_basic`: whether its flow is basic, and `is_binding`:
    whether a resource is used up in the basis. `floor_prices` float64[o]: value lost per result
    that the floor of an output requires; `is_floor_binding`: whether it has no more in the basis.
    """

    flows: Floats
    value: float
    prices: Floats
    split_prices: Floats
    input_prices: Floats
    is_full: Flags
    is_basic: Flags
    is_binding: Flags
    floor_prices: Floats
    is_floor_binding: Flags


class BasisProgram(FlowProgram):
    """The linear program of a network whose optima come with their basis."""

    def solve_basis(self, rates: Floats) -> FlowSolution:
        """Return an optimum at input rates, float64[i]. Raises `NotProven`."""
        self._run(rates, None)
        model, highs = self.model, self._highs
        solution, basis = highs.getSolution(), highs.getBasis()
        resources, splits = len(model.capacities), len(model.network.split_edges)
        flows = np.maximum(np.array(solution.col_value), 0.0) * self._unit
        flows[: model.inputs] = np.minimum(flows[: model.inputs], rates)
        duals = np.array(solution.row_dual)
        reduced = np.array(solution.col_dual[: model.inputs])
        columns = np.array([int(status) for status in basis.col_status])
        at_bound = np.array([int(status) for status in basis.row_status]) != int(_basic())
        first = resources + splits
        last = first + (len(model.floors) if model.floors.any() else 0)
        full = np.concatenate([columns[: model.inputs] == int(_upper()), at_bound[resources:first]])
        return FlowSolution(
            flows,
            float(model.values @ flows),
            np.maximum(duals[:resources], 0.0) * self._unit / model.capacities,
            np.maximum(duals[resources:first], 0.0),
            np.maximum(reduced, 0.0),
            full,
            columns == int(_basic()),
            at_bound[:resources],
            np.maximum(-duals[first:last], 0.0),
            at_bound[first:last],
        )


def _basic() -> Any:
    return optional_module("highspy").HighsBasisStatus.kBasic


def _upper() -> Any:
    return optional_module("highspy").HighsBasisStatus.kUpper
