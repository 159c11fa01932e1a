"""Solver and Solver-W: tables of plans by the linear program (paper 003, sections 5.1 and 5.2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.checks import amounts
from algorithms.errors import BadProblem
from algorithms.estimates import Estimate, ProblemSize
from algorithms.lab.shedding import formats
from algorithms.lab.shedding.plan_table.division import DEFAULT_VALUES, MAX_VALUES
from algorithms.lab.shedding.plan_table.network_table import TablePlan, build_network_table
from algorithms.lab.shedding.plan_table.rate_distributions import (
    ExponentialRates,
    MeasuredRates,
    RateDistribution,
)
from algorithms.shedding.problem import SheddingProblem
from algorithms.vocabulary import Floats, Parameters, Progress, parameter, silent


@dataclass(frozen=True)
class HistoryProblem(SheddingProblem):
    """A problem with measured rates: rows float64[n, i] in the order of the inputs, or None."""

    history: Floats | None = None


@dataclass(frozen=True)
class TableParameters(Parameters):
    """The parameters of tables of plans."""

    epsilon: float = parameter(
        0.05, title="Largest allowed error", letter="epsilon",
        unit="share", minimum=1e-6, maximum=1.0,
        help="The largest error of the table, as a share of the optimum.",
    )  # fmt: skip
    max_rate: float | None = parameter(
        None, title="Bound of the rates",
        unit="records per unit of time", minimum=0.0, maximum=1e12,
        help="The bound of every input's rate; none: a multiple of its given rate.",
    )  # fmt: skip
    overload: float = parameter(
        3.0, title="Bound over the given rate", minimum=1.0, maximum=1e6,
        help="Without a bound of the rates: the bound of each input's rate over its given rate.",
    )  # fmt: skip
    lp_values: int = parameter(
        DEFAULT_VALUES, title="Largest number of LP values", minimum=1, maximum=MAX_VALUES,
        help="The most points at which the linear program is solved; more are an error.",
    )  # fmt: skip

    def estimate(self, size: ProblemSize) -> Estimate:
        """Return the estimate: all linear programs are solved."""
        return super().estimate(size).plus(1e-3 * self.lp_values, 4_000.0 * self.lp_values)

    def bounds(self, problem: SheddingProblem) -> Floats:
        """Return the bound of each input's rate, float64[i]."""
        if self.max_rate is None:
            return problem.vector * self.overload
        return np.full(len(problem.vector), self.max_rate)


@dataclass(frozen=True)
class Solver(TableParameters):
    """Plans for all rates up to bounds, each within epsilon of the optimum (section 5.1)."""

    def solve(self, problem: SheddingProblem, progress: Progress = silent) -> TablePlan:
        """Return the plan at the given rates, with the table.

        Raises `BadProblem` on floors; `TooLarge` if the table is too large.
        """
        table = build_network_table(
            problem.model,
            self.bounds(problem),
            self.epsilon,
            lp_values=self.lp_values,
            progress=progress,
        )
        return TablePlan.at_rates_of(problem, table)


@dataclass(frozen=True)
class SolverW(TableParameters):
    """Plans for all rates up to bounds, within epsilon of the optimum on average (section 5.2).

    The average is over the measured rates of the problem's history, otherwise over independent
    exponential rates.
    """

    mean: float | None = parameter(
        None, title="Mean rate", letter="lambda",
        unit="records per unit of time", minimum=0.0, maximum=1e12,
        help="Without a history: the mean of every input's rate; none: its given rate.",
    )  # fmt: skip

    def solve(self, problem: SheddingProblem, progress: Progress = silent) -> TablePlan:
        """Return the plan at the given rates, with the table.

        Without `max_rate`, the bounds include all measured rates. Raises `BadProblem` on floors,
        and if no rates of the distribution are within the bounds; `TooLarge` if the table is too
        large.
        """
        bounds = self.bounds(problem)
        distribution = self.distribution(problem)
        if isinstance(distribution, MeasuredRates) and self.max_rate is None:
            bounds = np.maximum(bounds, distribution.rates.max(axis=0))
        table = build_network_table(
            problem.model,
            bounds,
            self.epsilon,
            distribution=distribution,
            lp_values=self.lp_values,
            progress=progress,
        )
        return TablePlan.at_rates_of(problem, table)

    def distribution(self, problem: SheddingProblem) -> RateDistribution:
        """Return the distribution of the rates of a problem."""
        if isinstance(problem, HistoryProblem) and problem.history is not None:
            return MeasuredRates.of(problem.history)
        if self.mean is None:
            return ExponentialRates(problem.vector)
        return ExponentialRates(np.full(len(problem.vector), self.mean))


def history_problem_from_json(data: object, settings: object = None) -> SheddingProblem:
    """Build a problem of Solver-W from JSON values: `history` has past rates of every input.

    Raises `BadProblem`.
    """
    if not isinstance(data, Mapping) or "history" not in data:
        return formats.problem_from_json(data, settings)
    rest = {name: value for name, value in data.items() if name != "history"}
    problem = formats.problem_from_json(rest, settings)
    history = _history(data["history"], problem.network.inputs)
    return HistoryProblem(problem.network, problem.rates, history)


def table_plan_to_json(plan: TablePlan) -> dict[str, Any]:
    """Return a plan as JSON values, with the size and the errors of its table."""
    table = plan.table
    result = formats.plan_to_json(plan) | {
        "lp_values": table.lp_values,
        "boxes": table.boxes,
        "plans": table.plans,
        "error": table.error,
    }
    if table.expected_error is not None:
        result |= {"expected_error": table.expected_error, "coverage": table.coverage}
    return result


def _history(rows: object, inputs: tuple[str, ...]) -> Floats:
    """Return the rates of each input by time, float64[n, i]."""
    if not isinstance(rows, Mapping):
        raise BadProblem("history", "must be an object with a list of rates for each input")
    for name in rows:
        if name not in inputs:
            raise BadProblem(f"history.{name}", "is not an input of the network")
    columns = []
    for name in inputs:
        if name not in rows:
            raise BadProblem(f"history.{name}", "is missing: each input needs its past rates")
        columns.append(amounts(f"history.{name}", rows[name]))
        if len(columns[-1]) != len(columns[0]) or not len(columns[-1]):
            why = f"must be {len(columns[0]) or 'some'} rates, not {len(columns[-1])}"
            raise BadProblem(f"history.{name}", why)
    return np.stack(columns, axis=1)
