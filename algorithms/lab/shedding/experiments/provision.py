"""Figure 11(c): Solver-W on a recorded workload, by the provision level."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.lab.datasets import DATA_FOLDER
from algorithms.lab.experiment import Axis, Experiment, Measures, Panel
from algorithms.lab.shedding.experiments.load_distribution import PAPER_EXPECTED, PROVISION
from algorithms.lab.shedding.experiments.networks import chains
from algorithms.lab.shedding.experiments.setup import (
    AXES,
    C_FIT,
    D_FIT,
    ERROR,
    EXACT,
    LP_VALUES,
    MEASURE_TEXT,
    MEASURES,
    PERCENT,
    SECONDS,
    SOLVER,
    SOLVER_W,
    Case,
    Planned,
    RandomRates,
    compare,
    larger_cost,
    largest_loads,
)
from algorithms.lab.shedding.plan_table.rate_distributions import MeasuredRates
from algorithms.lab.shedding.real_workloads import RATES_FILE, recorded_rates
from algorithms.shedding.planner import SHEDDING
from algorithms.vocabulary import Floats, Progress, parameter

TRACES: Final = (
    "bc_two_halves_100ms", "bc_two_halves_10ms", "bc_small_vs_large_frames_100ms",
    "bc_small_vs_large_frames_10ms", "wiki_media_vs_rest_100ms", "nasa_images_vs_rest_10s",
    "llm_code_vs_conv_10s",
)  # fmt: skip


@dataclass(frozen=True)
class Recorded(Planned):
    """Recorded rates of two inputs, and chains whose costs shrink together."""

    larger_ms: float = larger_cost("; the smaller one is half of it")
    trace: str = parameter(
        TRACES[0], title="Recorded rates", help="The recorded rates.", choices=TRACES,
    )  # fmt: skip
    feasible: float = parameter(
        0.2, title="Feasible part of the rates",
        help="Part of the recorded rates that chains of 64 and 32 ms process; the rates are "
        "scaled to it.",
        minimum=0.01, maximum=0.99,
    )  # fmt: skip
    epsilon: float = parameter(
        PAPER_EXPECTED, title="Allowed error", letter="epsilon",
        help="The expected error of Solver-W, and the largest error of Solver.",
        minimum=0.001, maximum=0.5,
    )  # fmt: skip

    def rates(self) -> Floats:
        """Return the scaled rates float64[n, 2]. Raises `BadProblem` without the data."""
        rates = recorded_rates(self.trace)
        return rates / np.quantile(largest_loads(chains(64.0, 32.0), rates), self.feasible)


def compare_provision(
    parameters: Recorded, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the measures of each series; errors are at recorded infeasible rates."""
    network = chains(parameters.larger_ms, parameters.larger_ms / 2)
    recorded = parameters.rates()
    case = Case(
        network,
        recorded.max(axis=0),
        parameters.lp_values,
        parameters.epsilon,
        parameters.epsilon,
        MeasuredRates.of(recorded),
    )
    is_infeasible = largest_loads(network, recorded) > 1
    points = recorded[is_infeasible]
    if len(points) > parameters.points:
        generator = np.random.default_rng(seed)
        points = points[generator.choice(len(points), parameters.points, replace=False)]
    rates = RandomRates.of(network, points)
    provision = PERCENT * (1 - float(is_infeasible.mean()))
    for name, measures in compare(case, series, rates, report):
        yield name, {**measures, PROVISION.name: provision}


FIG11C: Final = Experiment(
    planner=SHEDDING,
    name="fig11c",
    title="Solver-W by the provision level",
    about="Paper 003, section 8.2.2, figure 11(c): recorded rates of two inputs and crossed chains "
    "of 64 and 32 ms, whose costs shrink in proportion. The rates are scaled so that these chains "
    "process 20 % of them, as in the paper; its TCP traces are those of the same archive, the "
    "expected error is that of section 8.2.1. “Rates that need no drops” are the provision level. "
    f"Errors are at recorded infeasible rates. The traces need the file {RATES_FILE} in the folder "
    f"that {DATA_FOLDER} names. {MEASURE_TEXT}",
    x=Axis("larger_ms", "Larger cost of a chain", "ms"),
    panels=(
        Panel("Plan generation time", SECONDS),
        Panel("LP values", LP_VALUES),
        Panel("Provision level", PROVISION),
        Panel("Error", ERROR),
    ),
    parameters=Recorded,
    values=(64.0, 56.0, 48.0, 40.0, 32.0, 24.0, 16.0),
    series=(SOLVER_W, SOLVER, EXACT),
    choices=(SOLVER_W, SOLVER, C_FIT, D_FIT, EXACT),
    measures=(*MEASURES, PROVISION.name),
    axes=AXES,
    trial=compare_provision,
)
