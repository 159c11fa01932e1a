"""Tables of plans of a whole network, one per independent fragment (paper 003, section 8.2.4)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.checks import amounts
from algorithms.errors import BadProblem
from algorithms.lab.shedding.fragments import fragments
from algorithms.lab.shedding.plan_table.division import (
    DEFAULT_VALUES,
    OracleMaker,
    build_table,
    lp_oracle,
)
from algorithms.lab.shedding.plan_table.rate_distributions import RateDistribution
from algorithms.lab.shedding.plan_table.table import PlanTable
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.network import Network
from algorithms.shedding.problem import SheddingPlan, SheddingProblem
from algorithms.vocabulary import Floats, Ints, Progress, portion, silent


@dataclass(frozen=True, eq=False)
class _Part:
    """The table of a fragment, with the places of its inputs and drop locations in the network."""

    table: PlanTable
    inputs: Ints
    locations: Ints


@dataclass(frozen=True, eq=False)
class NetworkTable:
    """The tables of the independent fragments of a network.

    `lp_values`, `boxes`, `plans`: of all tables. `error`: the largest percent error, as a part, at
    any rates within the bounds, since the value of the network is the sum of those of its
    fragments. `expected_error`: the sum of those of the fragments; the mean percent error of the
    network is at most that. `coverage`: the least probability of a fragment's rates within bounds.
    """

    model: FlowModel
    parts: tuple[_Part, ...]

    @property
    def lp_values(self) -> int:
        """Return the number of points of which the optimum was computed."""
        return sum(part.table.lp_values for part in self.parts)

    @property
    def boxes(self) -> int:
        """Return the number of boxes that are not divided."""
        return sum(part.table.boxes for part in self.parts)

    @property
    def plans(self) -> int:
        """Return the number of plans."""
        return sum(part.table.plans for part in self.parts)

    @property
    def error(self) -> float:
        """Return the largest percent error at rates within the bounds, as a part."""
        return max((part.table.error for part in self.parts), default=0.0)

    @property
    def expected_error(self) -> float | None:
        """Return a bound of the mean percent error, as a part; None without a distribution."""
        errors = [part.table.expected_error for part in self.parts]
        return None if None in errors else sum(error for error in errors if error is not None)

    @property
    def coverage(self) -> float:
        """Return the least probability of a fragment's rates within the bounds."""
        return min((part.table.coverage for part in self.parts), default=1.0)

    def flows_at(self, rates: Floats) -> Floats:
        """Return what each drop location keeps at rates float64[i], as flows float64[d]."""
        flows = self.model.unshed(rates)
        for part in self.parts:
            flows[part.locations] = part.table.flows_at(rates[part.inputs])
        return flows

    def keep_at(self, rates: Floats) -> Floats:
        """Return the fraction that each drop location keeps at rates float64[i], float64[d]."""
        return self.model.keep(self.flows_at(rates), rates)

    def value_at(self, rates: Any) -> float:
        """Return the weighted results of the plan at rates [i]. Raises `BadProblem`."""
        checked = amounts("rates", rates)
        if len(checked) != self.model.inputs:
            why = f"must be {self.model.inputs:,}, one per input, not {len(checked):,}"
            raise BadProblem("rates", why)
        return float(self.model.values @ self.flows_at(checked))

    def plan_at(self, rates: Mapping[str, float]) -> SheddingPlan:
        """Return the plan at rates by input. Raises `BadProblem` on rates that are none."""
        problem = SheddingProblem(self.model.network, rates)
        return SheddingPlan.of_flows(problem, self.flows_at(problem.vector))


@dataclass(frozen=True)
class TablePlan(SheddingPlan):
    """The plan that a table has for the rates of a problem, with the table."""

    table: NetworkTable

    @classmethod
    def at_rates_of(cls, problem: SheddingProblem, table: NetworkTable) -> "TablePlan":
        """Return the plan for the rates of a problem."""
        plan = SheddingPlan.of_flows(problem, table.flows_at(problem.vector))
        return cls(plan.keep, plan.outcome, table)


def build_network_table(
    model: FlowModel,
    bounds: Any,
    epsilon: float,
    *,
    distribution: RateDistribution | None = None,
    oracle: OracleMaker = lp_oracle,
    lp_values: int = DEFAULT_VALUES,
    progress: Progress = silent,
) -> NetworkTable:
    """Return tables of plans for rates up to bounds [i] with an error of at most `epsilon`.

    Arguments and errors are those of `build_table`, which is called for each fragment. With a
    distribution, each of k fragments has an expected error of at most epsilon / k.
    """
    limits = amounts("bounds", bounds)
    if len(limits) != model.inputs:
        why = f"must be {model.inputs:,} rates, one per input, not {len(limits):,}"
        raise BadProblem("bounds", why)
    if distribution is not None and distribution.inputs != model.inputs:
        why = f"must be of {model.inputs:,} inputs, not {distribution.inputs:,}"
        raise BadProblem("distribution", why)
    fragments = list(_fragments(model.network))
    share = 1 / len(fragments)
    parts: list[_Part] = []
    for number, (fragment, inputs, locations) in enumerate(fragments):
        table = build_table(
            model
            if len(fragments) == 1 and len(inputs) == model.inputs
            else FlowModel.of(fragment),
            limits[inputs],
            epsilon if distribution is None else epsilon * share,
            distribution=None if distribution is None else distribution.marginal(inputs),
            oracle=oracle,
            lp_values=lp_values - sum(part.table.lp_values for part in parts),
            progress=portion(progress, number * share, share),
        )
        parts.append(_Part(table, inputs, locations))
    return NetworkTable(model, tuple(parts))


def _fragments(network: Network) -> Iterator[tuple[Network, Ints, Ints]]:
    """Yield each fragment with the places of its inputs and of its drop locations."""
    inputs = {name: place for place, name in enumerate(network.inputs)}
    locations = {name: place for place, name in enumerate(network.locations)}
    for fragment in fragments(network):
        yield (
            fragment,
            np.array([inputs[name] for name in fragment.inputs], np.int64),
            np.array([locations[name] for name in fragment.locations], np.int64),
        )
