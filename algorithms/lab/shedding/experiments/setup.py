"""Parameters, measures and compared planners that the experiments of load shedding share."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from algorithms.errors import TooLarge
from algorithms.estimates import MB, Estimate
from algorithms.lab.experiment import Axis, Measures, Repeated
from algorithms.lab.shedding.exact.planner import ExactPlanner
from algorithms.lab.shedding.experiments.networks import chains, fan_out
from algorithms.lab.shedding.fit.central import MAX_EPSILON, FitTables
from algorithms.lab.shedding.fit.distributed import DistributedTables, Traffic
from algorithms.lab.shedding.fit.rules import RowRule
from algorithms.lab.shedding.plan_table.network_table import build_network_table
from algorithms.lab.shedding.plan_table.rate_distributions import RateDistribution
from algorithms.lab.shedding.plan_table.table import PlanTable
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.lp import FlowProgram
from algorithms.shedding.network import Network
from algorithms.shedding.problem import SheddingPlan, SheddingProblem
from algorithms.vocabulary import Floats, Progress, parameter

SOLVER: Final = "solver"
SOLVER_W: Final = "solver_w"
C_FIT: Final = "c_fit"
D_FIT: Final = "d_fit"
EXACT: Final = "exact"
# As the papers name them; the titles of the algorithms are too long beside a number.
SHORT_TITLES: Final = {
    SOLVER: "Solver", SOLVER_W: "Solver-W", C_FIT: "C-FIT", D_FIT: "D-FIT", EXACT: "Optimum",
}  # fmt: skip
# C-FIT with other rules for the rows that tables keep.
RULES: Final = {f"{C_FIT}_{rule}": rule for rule in RowRule if rule is not RowRule.NEEDED}
RULE_TITLES: Final = {name: f"C-FIT, rows by the rule {rule}" for name, rule in RULES.items()}

SECONDS: Final = Axis("seconds", "Plan generation time", "s", log=True)
LP_VALUES: Final = Axis("lp_values", "LP values", log=True)
ENTRIES: Final = Axis("entries", "Entries of the table", log=True)
ERROR: Final = Axis("error", "Largest error at random infeasible rates", "%")
SENT_ROWS: Final = Axis("sent_rows", "Rows that nodes send", log=True)
SENT_BYTES: Final = Axis("sent_bytes", "Bytes that nodes send", "bytes", log=True)
MEASURES: Final = ("seconds", "lp_values", "entries", "error", "sent_rows", "sent_bytes")
AXES: Final = (SECONDS, LP_VALUES, ENTRIES, ERROR, SENT_ROWS, SENT_BYTES)
PERCENT: Final = 100.0

MEASURE_TEXT: Final = (
    "“Plan generation time” is processor time, without compiling. “LP values” are the linear "
    "programs that were solved. “Entries of the table” are boxes of Solver and Solver-W, rows of "
    "C-FIT and D-FIT, cuts and regions of the exact planner, which is beyond the paper and plans "
    "all random rates, so its time is that of planning and look-ups. The error is that of the "
    "plans at random infeasible rates up to the bound, against the linear program. The nodes of "
    "D-FIT send rows and bytes. A series has no value where its table would exceed its bounds."
)
CHAIN_TEXT: Final = (
    "The numbers of figure 9 are not in the text but for (64, 32) as the second of five networks, "
    "and equal sums of costs on both nodes: assumed are crossed chains of 56, 64, 72, 80 and 88 ms "
    "with 40, 32, 24, 16 and 8 ms, nodes of one processor, and rates up to 60/s."
)


def larger_cost(about: str = "", *, default: float = 64.0, least: float = 1.0) -> Any:
    """Return the parameter of the larger cost of a chain, in ms; `about`: what else it sets."""
    return parameter(
        default,
        title="Larger cost of a chain",
        unit="ms",
        help=f"Larger cost of a chain{about}.",
        minimum=least,
        maximum=1_000.0,
    )


def smaller_cost(*, default: float = 32.0, least: float = 0.0) -> Any:
    """Return the parameter of the smaller cost of a chain, in ms."""
    return parameter(
        default,
        title="Smaller cost of a chain",
        unit="ms",
        help="Smaller cost of a chain.",
        minimum=least,
        maximum=1_000.0,
    )


@dataclass(frozen=True)
class Planned(Repeated):
    """Rates up to a bound, for which plans are made."""

    seeds: int = parameter(
        1, help="How many times random rates are drawn, with the seeds 0, 1, 2, ...",
        minimum=1, maximum=10,
    )  # fmt: skip
    most_rate: float = parameter(
        60.0, title="Bound of the rates", unit="records/s", help="Bound of the rate of each input.",
        minimum=1.0, maximum=1_000.0,
    )  # fmt: skip
    points: int = parameter(
        300, title="Random rates", unit="rates", help="Random rates at which errors are measured.",
        minimum=10, maximum=10_000,
    )  # fmt: skip
    lp_values: int = parameter(
        20_000, title="Largest number of LP values",
        help="Linear programs that a table of plans may need.",
        minimum=100, maximum=200_000,
    )  # fmt: skip

    def estimate_trial(self, series: str) -> Estimate:
        """Return the estimate of one planner: its linear programs, and those of random rates."""
        del series
        programs = self.lp_values + 10 * self.points
        return Estimate(100 * MB + 4_000.0 * programs, 60.0 + 1e-3 * programs)


@dataclass(frozen=True)
class Guaranteed(Planned):
    """Plans with a largest error."""

    epsilon: float = parameter(
        0.05, title="Largest allowed error", letter="epsilon",
        help="The largest error that is allowed.",
        minimum=0.01, maximum=MAX_EPSILON,
    )  # fmt: skip


class Table(NamedTuple):
    """What a planner prepared: its size, and the results of its plans at rates float64[p, i]."""

    lp_values: int
    entries: int
    values: Callable[[Floats], Floats]
    traffic: Traffic | None = None


def by_solver(case: "Case", epsilon: float, distribution: RateDistribution | None) -> Table:
    """Return the table of Solver, or of Solver-W with a distribution. Raises `TooLarge`."""
    table = build_network_table(
        FlowModel.of(case.network),
        case.bounds,
        epsilon,
        distribution=distribution,
        lp_values=case.lp_values,
    )
    values = table.model.values
    return Table(
        table.lp_values,
        table.boxes,
        lambda points: np.array([values @ table.flows_at(point) for point in points]),
    )


def by_c_fit(network: Network, epsilon: float, rule: RowRule = RowRule.NEEDED) -> Table:
    """Return the feasible input table of the root by C-FIT. Raises `TooLarge`."""
    tables = FitTables.of(network, epsilon, rule=rule)
    return Table(0, tables.rows, lambda points: _values_of(network, points, tables.plan))


def by_d_fit(network: Network, epsilon: float) -> Table:
    """Return the feasible input table of the root by D-FIT. Raises `TooLarge`."""
    nodes = DistributedTables(network, epsilon)
    return Table(
        0, nodes.rows, lambda points: _values_of(network, points, nodes.plan), nodes.traffic
    )


def _values_of(
    network: Network, points: Floats, plan: Callable[[SheddingProblem], SheddingPlan]
) -> Floats:
    problems = (
        SheddingProblem(network, dict(zip(network.inputs, point.tolist(), strict=True)))
        for point in points
    )
    return np.array([plan(problem).outcome.value for problem in problems])


def by_exact(network: Network, points: Floats) -> Table:
    """Return the exact planner after it planned all points, float64[p, i]."""
    planner = ExactPlanner(network)
    planner.values(points)
    return Table(planner.programs, planner.cuts + planner.regions, planner.values)


@dataclass(frozen=True, eq=False)
class Case:
    """What the compared planners plan: a network, bounds of its rates float64[i], errors.

    `epsilon`: the largest error; `expected`: the expected error of Solver-W under the distribution.
    """

    network: Network
    bounds: Floats
    lp_values: int
    epsilon: float
    expected: float = 0.0
    distribution: RateDistribution | None = None

    @classmethod
    def of(
        cls,
        network: Network,
        parameters: Planned,
        epsilon: float,
        distribution: RateDistribution | None = None,
    ) -> "Case":
        """Return a network with the same bound of all rates, and the same error of all planners."""
        bounds = np.full(len(network.inputs), parameters.most_rate)
        return cls(network, bounds, parameters.lp_values, epsilon, epsilon, distribution)

    def plan(self, name: str, points: Floats) -> Table:
        """Let the planner of a series plan. Raises `TooLarge`.

        `points` float64[p, i]: rates that the exact planner looks up.
        """
        if name == SOLVER:
            return by_solver(self, self.epsilon, None)
        if name == SOLVER_W:
            return by_solver(self, self.expected, self.distribution)
        if name == D_FIT:
            return by_d_fit(self.network, self.epsilon)
        if name == EXACT:
            return by_exact(self.network, points)
        return by_c_fit(self.network, self.epsilon, RULES.get(name, RowRule.NEEDED))


@dataclass(frozen=True, eq=False)
class RandomRates:
    """Random infeasible rates float64[p, i] up to a bound, with the optima float64[p] there."""

    points: Floats
    best: Floats

    @classmethod
    def drawn(cls, network: Network, parameters: Planned, seed: int) -> "RandomRates":
        """Draw as many rates; those that are infeasible count, so there may be none."""
        generator = np.random.default_rng(seed)
        rates = generator.uniform(0, parameters.most_rate, (parameters.points, len(network.inputs)))
        return cls.of(network, rates[largest_loads(network, rates) > 1])

    @classmethod
    def of(cls, network: Network, points: Floats) -> "RandomRates":
        """Return infeasible rates float64[p, i] with the optima there."""
        program = FlowProgram(FlowModel.of(network))
        return cls(points, np.array([program.solve(point).value for point in points]))

    def error_of(self, table: Table) -> float:
        """Return the largest error of plans, as a part of the optimum; 0 without rates.

        Values above the optimum are errors, too: no feasible plan has them.
        """
        given = table.values(self.points)
        return float(np.max(np.abs(1 - given / self.best), initial=0.0))


def largest_loads(network: Network, rates: Floats) -> Floats:
    """Return the load of the most loaded node, as part of its capacity, at rates float64[n, i]."""
    model = FlowModel.of(network)
    loads = np.asarray(model.loads @ model.unshed(rates.T)).T / model.capacities
    return np.asarray(loads.max(axis=1))


def measure(case: Case, name: str, rates: RandomRates) -> Measures:
    """Return the measures of a planner; none of a planner whose table is too large."""
    started = time.process_time()
    try:
        table = case.plan(name, rates.points)
    except TooLarge:
        return dict.fromkeys(MEASURES, float("nan"))
    seconds = time.process_time() - started
    traffic = table.traffic
    return {
        "seconds": seconds,
        "lp_values": table.lp_values,
        "entries": table.entries,
        "error": PERCENT * rates.error_of(table),
        "sent_rows": float("nan") if traffic is None else traffic.rows,
        "sent_bytes": float("nan") if traffic is None else traffic.bytes,
    }


def compare(
    case: Case, series: Sequence[str], rates: RandomRates, report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the measures of each series on the same rates."""
    compile_planners()
    for number, name in enumerate(series):
        report(number / len(series))
        yield name, measure(case, name, rates)


@cache
def compile_planners() -> None:
    """Run every planner once, so that no measured time includes compiling or importing."""
    parameters = Planned(points=10)
    for network in (chains(64.0, 32.0), fan_out(100.0, [100.0, 200.0])):
        rates = RandomRates.drawn(network, parameters, 0)
        case = Case.of(network, parameters, MAX_EPSILON)
        for name in (SOLVER, C_FIT, *RULES, D_FIT, EXACT):
            measure(case, name, rates)


def expected_error(table: PlanTable, distribution: RateDistribution, network: Network) -> float:
    """Return the mean percent error of the boxes of a table under a distribution, as a part.

    The mean is over the rates within the bounds. The optima at the corners are those of the exact
    planner (section 5.2).
    """
    space, tree = table.space, table.tree
    leaves = list(tree.leaves())
    tops = np.array([space.full(tree.rates(tree.top(box))) for box in leaves])
    bottoms = np.array([space.full(tree.rates(tree.bottom(box))) for box in leaves])
    planner = ExactPlanner(network)
    best, given = planner.values(tops), planner.values(bottoms)
    shared = np.array([not space.is_feasible(top) for top in tops]) & (best > 0)
    errors = np.where(shared, 1 - given / np.where(best > 0, best, 1.0), 0.0)
    parts = distribution.probabilities(*space.full_intervals(*tree.intervals(leaves)))
    return float((parts * errors).sum() / parts.sum())
