"""Figures 10 and 11(a): the planners by the load distribution of the queries, and by the load."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from algorithms.errors import BadParameters, TooLarge
from algorithms.lab.experiment import Axis, Experiment, Measures, Panel
from algorithms.lab.shedding.experiments.networks import CROSSED, LAYOUTS, chains
from algorithms.lab.shedding.experiments.setup import (
    AXES,
    C_FIT,
    CHAIN_TEXT,
    D_FIT,
    ENTRIES,
    ERROR,
    EXACT,
    LP_VALUES,
    MEASURE_TEXT,
    MEASURES,
    PERCENT,
    RULE_TITLES,
    RULES,
    SECONDS,
    SHORT_TITLES,
    SOLVER,
    SOLVER_W,
    Case,
    Guaranteed,
    Planned,
    RandomRates,
    compare,
    compile_planners,
    expected_error,
    larger_cost,
    largest_loads,
    measure,
)
from algorithms.lab.shedding.plan_table.network_table import build_network_table
from algorithms.lab.shedding.plan_table.rate_distributions import ExponentialRates, RateDistribution
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.network import Network
from algorithms.shedding.planner import SHEDDING
from algorithms.vocabulary import Progress, parameter

EXPECTED: Final = Axis("expected", "Expected error that Solver-W guarantees", "%")
PROVISION: Final = Axis("provision", "Rates that need no drops", "%")
# Figure 9 as assumed, in ms.
LARGER_MS: Final = (56.0, 64.0, 72.0, 80.0, 88.0)
TOTAL_MS: Final = 96.0
# Section 8.2.1: what Solver with an error of 5 % reached on average.
PAPER_EXPECTED: Final = 0.0144
_SAMPLES: Final = 10_000
_LAMBDA_TEXT: Final = (
    "The mean rate is the paper's lambda, here in records/s, as a greater one means more overload."
)


@dataclass(frozen=True)
class Distributed(Guaranteed):
    """Chains whose loads are distributed in different ways over two nodes (figure 9)."""

    larger_ms: float = larger_cost()
    total_ms: float = parameter(
        TOTAL_MS, title="Sum of both costs",
        unit="ms", help="Sum of the larger and the smaller cost.",
        minimum=2.0, maximum=2_000.0,
    )  # fmt: skip
    layout: str = parameter(
        CROSSED, choices=LAYOUTS,
        help="crossed: each chain has the larger cost on another node; parallel: one chain has it "
        "on both nodes.",
    )  # fmt: skip
    mean_rate: float = parameter(
        5.0, title="Mean rate", letter="lambda",
        unit="records/s", help="Mean of the exponential rate of each input; of Solver-W.",
        minimum=0.1, maximum=1_000.0,
    )  # fmt: skip

    def network(self) -> Network:
        """Return the chains. Raises `BadParameters` if the smaller cost would be negative."""
        if self.larger_ms > self.total_ms:
            why = f"must be at least the larger cost, {self.larger_ms:g} ms"
            raise BadParameters({"total_ms": [why]})
        return chains(self.larger_ms, self.total_ms - self.larger_ms, 2, self.layout)


def compare_planners(
    parameters: Distributed, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the measures of each series; Solver-W guarantees the expected error of Solver."""
    network = parameters.network()
    distribution = ExponentialRates(np.full(2, parameters.mean_rate))
    case = Case.of(network, parameters, parameters.epsilon, distribution)
    expected = expected_of_solver(case)
    rates = RandomRates.drawn(network, parameters, seed)
    for name, measures in compare(replace(case, expected=expected), series, rates, report):
        reached = PERCENT * expected if name in (SOLVER, SOLVER_W) else float("nan")
        yield name, {**measures, EXPECTED.name: reached}


def expected_of_solver(case: Case) -> float:
    """Return the expected error of the table of Solver, as a part.

    If that table is too large, return the largest error, which Solver would not exceed.
    """
    assert case.distribution is not None
    try:
        table = build_network_table(
            FlowModel.of(case.network), case.bounds, case.epsilon, lp_values=case.lp_values
        )
    except TooLarge:
        return case.epsilon
    # Chains over two nodes share both.
    (part,) = table.parts
    return expected_error(part.table, case.distribution, case.network)


def name_of(planner: str, larger_ms: float) -> str:
    """Return the name of a series: a planner on a network of figure 9."""
    return f"{planner}_{larger_ms:g}_{TOTAL_MS - larger_ms:g}"


_ON_NETWORKS: Final = {
    name_of(planner, larger): (planner, larger)
    for planner in (SOLVER_W, SOLVER, EXACT)
    for larger in LARGER_MS
}
_TITLES: Final = {
    name: f"{SHORT_TITLES[planner]}, {larger:g} and {TOTAL_MS - larger:g} ms"
    for name, (planner, larger) in _ON_NETWORKS.items()
}


@dataclass(frozen=True)
class ByMean(Planned):
    """Exponential rates of different means on the five networks."""

    mean_rate: float = parameter(
        5.0, title="Mean rate", letter="lambda",
        unit="records/s", help="Mean of the exponential rate of each input.",
        minimum=0.1, maximum=1_000.0,
    )  # fmt: skip
    epsilon: float = parameter(
        PAPER_EXPECTED, title="Allowed error", letter="epsilon",
        help="The expected error of Solver-W, and the largest error of Solver.",
        minimum=0.001, maximum=0.5,
    )  # fmt: skip


def compare_networks(
    parameters: ByMean, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the measures of a planner on each network, with the provision level."""
    compile_planners()
    distribution = ExponentialRates(np.full(2, parameters.mean_rate))
    for number, name in enumerate(series):
        report(number / len(series))
        planner, larger = _ON_NETWORKS[name]
        network = chains(larger, TOTAL_MS - larger)
        case = Case.of(network, parameters, parameters.epsilon, distribution)
        measures = measure(case, planner, RandomRates.drawn(network, parameters, seed))
        yield name, {**measures, "provision": provision_of(network, distribution, seed)}


def provision_of(network: Network, distribution: RateDistribution, seed: int) -> float:
    """Return the percentage of rates of a distribution that need no drops, by sampling."""
    rates = distribution.sample(_SAMPLES, np.random.default_rng(seed))
    return PERCENT * float((largest_loads(network, rates) <= 1).mean())


FIG10: Final = Experiment(
    planner=SHEDDING,
    name="fig10",
    title="Plan generation by the distribution of the load",
    about="Paper 003, section 8.2.1, figure 10: two chains over two nodes, from nearly equal to "
    "opposite costs. Solver-W guarantees the expected error that Solver reaches under exponential "
    f"rates. {_LAMBDA_TEXT} {CHAIN_TEXT} {MEASURE_TEXT}",
    x=Axis("larger_ms", "Larger cost of a chain", "ms"),
    panels=(
        Panel("Plan generation time", SECONDS),
        Panel("LP values", LP_VALUES),
        Panel("Entries", ENTRIES),
        Panel("Error", ERROR),
    ),
    parameters=Distributed,
    values=LARGER_MS,
    series=(SOLVER, SOLVER_W, C_FIT, D_FIT, EXACT),
    choices=(SOLVER, SOLVER_W, C_FIT, *RULES, D_FIT, EXACT),
    series_titles=RULE_TITLES,
    measures=(*MEASURES, EXPECTED.name),
    axes=(*AXES, EXPECTED),
    trial=compare_planners,
)
FIG11A: Final = Experiment(
    planner=SHEDDING,
    name="fig11a",
    title="Solver-W by the mean rate",
    about="Paper 003, section 8.2.2, figure 11(a): Solver-W on the five networks of figure 9 under "
    "exponential rates. The paper does not state the expected error; here that of section 8.2.1. "
    f"“Rates that need no drops” are the provision level. {_LAMBDA_TEXT} {CHAIN_TEXT} "
    f"{MEASURE_TEXT}",
    x=Axis("mean_rate", "Mean rate", "records/s"),
    panels=(
        Panel("Plan generation time", SECONDS),
        Panel("LP values", LP_VALUES),
        Panel("Provision level", PROVISION),
    ),
    parameters=ByMean,
    values=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0),
    series=(*(name_of(SOLVER_W, larger) for larger in LARGER_MS), name_of(EXACT, 64.0)),
    choices=tuple(_ON_NETWORKS),
    series_titles=_TITLES,
    measures=(*MEASURES, PROVISION.name),
    axes=AXES,
    trial=compare_networks,
)
