"""Figure 13: Solver and C-FIT by the number of branches that share an operator."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.errors import BadParameters
from algorithms.lab.experiment import Axis, Experiment, Measures, Panel
from algorithms.lab.shedding.experiments.networks import fan_out, random_branches
from algorithms.lab.shedding.experiments.setup import (
    AXES,
    C_FIT,
    D_FIT,
    ENTRIES,
    ERROR,
    EXACT,
    LP_VALUES,
    MEASURE_TEXT,
    MEASURES,
    SECONDS,
    SOLVER,
    Case,
    Planned,
    RandomRates,
    compare,
    largest_loads,
)
from algorithms.shedding.planner import SHEDDING
from algorithms.vocabulary import Progress, parameter


@dataclass(frozen=True)
class Shared(Planned):
    """An operator on one node that feeds several branches on the same node."""

    branches: int = parameter(
        2, unit="branches", help="Branches, each with a result of its own.",
        minimum=1, maximum=512,
    )  # fmt: skip
    points: int = parameter(
        100, title="Random rates", unit="rates", help="Random rates at which errors are measured.",
        minimum=10, maximum=1_000,
    )  # fmt: skip
    epsilon: float = parameter(
        0.01,
        title="Largest allowed error",
        letter="epsilon",
        help="The largest error that is allowed.",
        minimum=0.005,
        maximum=0.5,
    )
    common_ms: float = parameter(
        1.0,
        title="Cost of the shared operator",
        unit="ms",
        help="Cost of the shared operator.",
        minimum=0.01,
        maximum=1_000.0,
    )
    least_ms: float = parameter(
        1.0,
        title="Least cost of a branch",
        unit="ms",
        help="Least cost of a branch.",
        minimum=0.01,
        maximum=1_000.0,
    )
    most_ms: float = parameter(
        9.0,
        title="Largest cost of a branch",
        unit="ms",
        help="Largest cost of a branch.",
        minimum=0.01,
        maximum=1_000.0,
    )
    overload: float = parameter(
        10.0, title="Bound over the largest rate without drops",
        help="Bound of the rate, over the largest rate that needs no drops.",
        minimum=1.1, maximum=1_000.0,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least_ms > self.most_ms:
            why = f"must be at most the largest cost, {self.most_ms:g} ms, not {self.least_ms:g}"
            raise BadParameters({"least_ms": [why]})


def compare_sharing(
    parameters: Shared, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the measures of each series on branches of random costs."""
    costs = random_branches(parameters.branches, parameters.least_ms, parameters.most_ms, seed)
    network = fan_out(parameters.common_ms, costs)
    # The load of one record/s, so that its inverse is the largest rate that needs no drops.
    (load,) = largest_loads(network, np.ones((1, 1)))
    most = parameters.overload / load
    case = Case(network, np.array([most]), parameters.lp_values, parameters.epsilon)
    generator = np.random.default_rng(seed)
    rates = RandomRates.of(network, generator.uniform(1 / load, most, (parameters.points, 1)))
    yield from compare(case, series, rates, report)


FIG13: Final = Experiment(
    planner=SHEDDING,
    name="fig13",
    title="Plan generation by the fan-out",
    about="Paper 003, section 8.2.3, figure 13: one node, one input, a shared operator and "
    "branches, with an error of 1 %. The paper does not state costs and rates: assumed are a "
    "shared operator of 1 ms, branches of random costs from 1 to 9 ms, and rates up to ten times "
    f"the largest one that needs no drops. {MEASURE_TEXT}",
    x=Axis("branches", "Branches", log=True),
    panels=(
        Panel("Plan generation time", SECONDS),
        Panel("LP values", LP_VALUES),
        Panel("Entries", ENTRIES),
        Panel("Error", ERROR),
    ),
    parameters=Shared,
    values=(2, 4, 8, 16, 32, 64, 128),
    series=(SOLVER, C_FIT, EXACT),
    choices=(SOLVER, C_FIT, D_FIT, EXACT),
    measures=MEASURES,
    axes=AXES,
    trial=compare_sharing,
)
