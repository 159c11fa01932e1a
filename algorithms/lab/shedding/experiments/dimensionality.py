"""Figure 14 and table 3: the planners by the number of inputs."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from algorithms.errors import TooLarge
from algorithms.lab.experiment import Axis, Experiment, Measures, Panel
from algorithms.lab.shedding.exact.planner import ExactPlanner
from algorithms.lab.shedding.experiments.networks import chains
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
    PERCENT,
    SECONDS,
    SENT_ROWS,
    SHORT_TITLES,
    SOLVER,
    SOLVER_W,
    Case,
    Guaranteed,
    Planned,
    RandomRates,
    compare,
    compile_planners,
    measure,
)
from algorithms.lab.shedding.fit.central import MAX_EPSILON
from algorithms.lab.shedding.plan_table.division import MAX_VALUES, build_table
from algorithms.lab.shedding.plan_table.rate_distributions import ExponentialRates
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.network import Network
from algorithms.shedding.planner import SHEDDING
from algorithms.vocabulary import Progress, parameter

INPUTS: Final = (2, 4, 8)
# The convergence of a table ends here.
LEAST_EXPECTED: Final = 1e-4
EXPECTED: Final = Axis("expected", "Expected error", "%", log=True)
_NETWORK_TEXT: Final = (
    "Crossed chains of 64 and 32 ms for 2 inputs, of 32 and 16 ms for 4, and 16 and 8 ms for 8, "
    "and so on, so that the load of all inputs at equal rates is the same."
)


def wide(inputs: int) -> Network:
    """Return the chains of section 8.2.4. Raises `BadParameters` on an odd number of inputs."""
    return chains(128.0 / inputs, 64.0 / inputs, inputs)


def _named(planners: Sequence[str], inputs: Sequence[int] = INPUTS) -> dict[str, tuple[str, int]]:
    """Return series by name: planners with numbers of inputs."""
    return {f"{name}_{count}": (name, count) for name in planners for count in inputs}


def _titles(named: Mapping[str, tuple[str, int]]) -> dict[str, str]:
    """Return the titles of series of planners with numbers of inputs."""
    return {
        name: f"{SHORT_TITLES[planner]}, {count} inputs" for name, (planner, count) in named.items()
    }


@dataclass(frozen=True)
class Converging(Planned):
    """Solver-W, after so many linear programs."""

    solved: int = parameter(
        1_000, title="Linear programs",
        unit="programs", help="Linear programs that are solved, at most.",
        minimum=1, maximum=MAX_VALUES,
    )  # fmt: skip
    lp_values: int = parameter(
        10_000, title="Largest number of LP values",
        help="Linear programs of the whole course; more are not solved.",
        minimum=100, maximum=200_000,
    )  # fmt: skip
    mean_rate: float = parameter(
        3.0, title="Mean rate", letter="lambda",
        unit="records/s", help="Mean of the exponential rate of each input.",
        minimum=0.1, maximum=1_000.0,
    )  # fmt: skip


class Course(NamedTuple):
    """How a table becomes better: after each division, programs, expected error, seconds."""

    programs: list[int]
    errors: list[float]
    seconds: list[float]


# One run reads one course per series at all its points.
@lru_cache(maxsize=len(INPUTS))
def converge(parameters: Converging, inputs: int) -> Course:
    """Return the course of Solver-W until its programs are used up."""
    compile_planners()
    course = Course([], [], [])
    started = time.process_time()

    def observe(programs: int, error: float) -> None:
        course.programs.append(programs)
        course.errors.append(error)
        course.seconds.append(time.process_time() - started)

    model = FlowModel.of(wide(inputs))
    # A larger table than these programs make is the end of the course, not a failure.
    with suppress(TooLarge):
        build_table(
            model,
            np.full(inputs, parameters.most_rate),
            LEAST_EXPECTED,
            distribution=ExponentialRates(np.full(inputs, parameters.mean_rate)),
            lp_values=parameters.lp_values,
            observe=observe,
        )
    return course


def measure_convergence(
    parameters: Converging, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the expected error of each series after so many linear programs."""
    for number, name in enumerate(series):
        report(number / len(series))
        planner, inputs = _CONVERGING[name]
        if planner == EXACT:
            yield name, _of_exact(parameters, inputs, seed)
            continue
        course = converge(replace(parameters, solved=1, seeds=1), inputs)
        place = int(np.searchsorted(course.programs, parameters.solved, side="right")) - 1
        yield name, _of_course(course, place)


def _of_course(course: Course, place: int) -> Measures:
    """Return the measures after a division; none before the first one is complete."""
    if place < 0:
        return dict.fromkeys((EXPECTED.name, SECONDS.name, LP_VALUES.name), float("nan"))
    return {
        EXPECTED.name: PERCENT * course.errors[place],
        SECONDS.name: course.seconds[place],
        LP_VALUES.name: course.programs[place],
    }


def _of_exact(parameters: Converging, inputs: int, seed: int) -> Measures:
    """Return the mean error of the exact planner at random rates of the distribution."""
    network = wide(inputs)
    generator = np.random.default_rng(seed)
    points = generator.exponential(parameters.mean_rate, (parameters.points, inputs))
    compile_planners()
    started = time.process_time()
    planner = ExactPlanner(network)
    given = planner.values(points)
    seconds = time.process_time() - started
    best = RandomRates.of(network, points).best
    return {
        EXPECTED.name: PERCENT * float(np.mean(np.abs(1 - given / best))),
        SECONDS.name: seconds,
        LP_VALUES.name: planner.programs,
    }


_CONVERGING: Final = _named((SOLVER_W, EXACT))


@dataclass(frozen=True)
class ByEpsilon(Guaranteed):
    """Chains of several numbers of inputs, with a largest error."""

    epsilon: float = parameter(
        0.1,
        title="Largest allowed error",
        letter="epsilon",
        help="The largest error that is allowed.",
        minimum=0.02,
        maximum=MAX_EPSILON,
    )
    points: int = parameter(
        100, title="Random rates", unit="rates", help="Random rates at which errors are measured.",
        minimum=10, maximum=2_000,
    )  # fmt: skip


def compare_errors(
    parameters: ByEpsilon, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the measures of each series: a planner with a number of inputs."""
    compile_planners()
    for number, name in enumerate(series):
        report(number / len(series))
        planner, inputs = _BY_INPUTS[name]
        network = wide(inputs)
        rates = RandomRates.drawn(network, parameters, seed)
        yield name, measure(Case.of(network, parameters, parameters.epsilon), planner, rates)


_BY_INPUTS: Final = _named((C_FIT, D_FIT, SOLVER, EXACT))


@dataclass(frozen=True)
class ByInputs(ByEpsilon):
    """Chains of a number of inputs."""

    inputs: int = parameter(2, unit="inputs", help="Number of inputs, even.", minimum=2, maximum=64)


def compare_sizes(
    parameters: ByInputs, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the measures of each planner at a number of inputs."""
    network = wide(parameters.inputs)
    rates = RandomRates.drawn(network, parameters, seed)
    yield from compare(Case.of(network, parameters, parameters.epsilon), series, rates, report)


FIG14A: Final = Experiment(
    planner=SHEDDING,
    name="fig14a",
    title="Convergence of Solver-W by the number of inputs",
    about="Paper 003, section 8.2.4, figure 14(a): the expected error of Solver-W after so many "
    "linear programs, under exponential rates of mean 3/s, by the number of inputs. The paper has "
    f"it over time, which is the measure “{SECONDS.label}”. {_NETWORK_TEXT} The series of the "
    "exact planner are beyond the paper: their expected error is the mean at random rates against "
    "the linear program, and does not depend on the programs. A series has no value before its "
    "first division.",
    x=Axis("solved", "Linear programs", log=True),
    panels=(Panel("Expected error", EXPECTED), Panel("Time", SECONDS)),
    parameters=Converging,
    values=(1, 10, 100, 300, 1_000, 3_000, 10_000),
    series=("solver_w_2", "solver_w_4", "solver_w_8"),
    choices=tuple(_CONVERGING),
    series_titles=_titles(_CONVERGING),
    measures=(EXPECTED.name, SECONDS.name, LP_VALUES.name),
    axes=(LP_VALUES,),
    trial=measure_convergence,
)
FIG14B: Final = Experiment(
    planner=SHEDDING,
    name="fig14b",
    title="Plan generation by error and number of inputs",
    about="Paper 003, section 8.2.4, figure 14(b): C-FIT by the largest error, for 2, 4 and 8 "
    f"inputs. {_NETWORK_TEXT} {MEASURE_TEXT}",
    x=Axis("epsilon", "Largest allowed error", log=True),
    panels=(
        Panel("Plan generation time", SECONDS),
        Panel("Entries", ENTRIES),
        Panel("Error", ERROR),
    ),
    parameters=ByEpsilon,
    values=(0.05, 0.1, 0.2, 0.3, 0.5),
    series=("c_fit_2", "c_fit_4", "c_fit_8", "exact_2", "exact_4", "exact_8"),
    choices=tuple(_BY_INPUTS),
    series_titles=_titles(_BY_INPUTS),
    measures=MEASURES,
    axes=AXES,
    trial=compare_errors,
)
TABLE3: Final = Experiment(
    planner=SHEDDING,
    name="table3",
    title="Table sizes by the number of inputs",
    about="Paper 003, section 8.2.5, table 3: entries of feasible input tables with an error of "
    f"10 %, by the number of inputs. {_NETWORK_TEXT} {MEASURE_TEXT}",
    x=Axis("inputs", "Inputs", log=True),
    panels=(
        Panel("Entries", ENTRIES),
        Panel("Plan generation time", SECONDS),
        Panel("Rows sent", SENT_ROWS),
        Panel("Error", ERROR),
    ),
    parameters=ByInputs,
    values=(2, 4, 8),
    series=(D_FIT, EXACT),
    choices=(C_FIT, D_FIT, SOLVER, EXACT),
    measures=MEASURES,
    axes=AXES,
    trial=compare_sizes,
)
