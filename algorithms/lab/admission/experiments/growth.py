"""Figure 14: latency and split nodes over time, while the load grows and falls again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from algorithms.admission.metadata import StreamMetadata, Transition
from algorithms.admission.planner import ADMISSION
from algorithms.admission.problem import NEW, AdmissionPlan, AdmissionProblem
from algorithms.admission.strategies import Strategy
from algorithms.errors import BadParameters
from algorithms.lab.admission.experiments.figures import AXES, LATENCY, NODES
from algorithms.lab.admission.experiments.setup import CHOICES, SERIES_TITLES, Simulated
from algorithms.lab.admission.real_workloads import RECORDED
from algorithms.lab.admission.simulation import Course, simulate
from algorithms.lab.admission.workloads import Workload, WorkloadSettings
from algorithms.lab.datasets import DATA_FOLDER
from algorithms.lab.experiment import Axis, Experiment, Measures, Panel
from algorithms.vocabulary import Floats, Ints, Progress, Seed, parameter, silent

GROWING: Final = "growing"
STATIC: Final = "static"
TIME: Final = Axis("time_s", "Time", "s")
MEASURES: Final = ("latency_s", "nodes", "optimum", "overloaded", "redirections", "buffered")
# All times of a course are measured in one simulation, and the points of one run share it.
_KEPT_COURSES: Final = 128


@dataclass(frozen=True)
class Growing(Simulated):
    """A load that grows from one level to another and falls back."""

    duration_s: int = parameter(
        2_400, title="Length of the simulation",
        unit="s", help="Length of the simulation; the load is highest in its middle.",
        minimum=300, maximum=14_400,
    )  # fmt: skip
    foresee: bool = parameter(
        default=True,
        title="Use the forecast",
        help="A split node whose predicted load exceeds its capacity is overloaded, too; otherwise "
        "the strategies act only after the latency has exceeded its limit.",
    )
    workload: str = parameter(
        GROWING,
        help="growing: all rates rise and fall evenly. The others are recorded and need the data "
        "sets; their average is the mean of the two levels.",
        choices=(GROWING, *RECORDED),
    )
    lowest: float = parameter(
        4.0,
        title="Load level at the beginning",
        unit="split nodes",
        help="Load level at the beginning.",
        minimum=0.5,
        maximum=32.0,
    )
    highest: float = parameter(
        32.0,
        title="Load level in the middle",
        unit="split nodes",
        help="Load level in the middle.",
        minimum=0.5,
        maximum=32.0,
    )
    static_nodes: int = parameter(
        32,
        title="Split nodes of the static cluster",
        unit="split nodes",
        help="Split nodes of the static cluster.",
        minimum=1,
        maximum=128,
    )
    time_s: float = parameter(
        0.0,
        title="Time",
        unit="s",
        help="Start of the interval that is measured.",
        minimum=0.0,
        maximum=14_400.0,
    )
    interval_s: float = parameter(
        100.0, title="Length of the measured interval",
        unit="s", help="Length of the interval that is measured.",
        minimum=1.0, maximum=14_400.0,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lowest > self.highest:
            why = f"must be at most the highest level, {self.highest:g}, not {self.lowest:g}"
            raise BadParameters({"lowest": [why]})

    def drawn(self, seed: int) -> Workload:
        """Draw the workload of one seed. Raises `BadProblem` and `BadParameters` as `draw`."""
        swing = self.highest / self.lowest
        settings = self.settings(
            (self.lowest + self.highest) / 2, cycle_s=float(self.duration_s), swing=swing
        )
        if self.workload == GROWING:
            return self.known(growing(settings, seed))
        return self.draw(self.workload, settings, seed)

    def strategy(self, name: str) -> Strategy:
        """Return the strategy of a series."""
        if name == STATIC:
            return StaticCluster(count=self.static_nodes)
        return super().strategy(name)


def growing(settings: WorkloadSettings, seed: Seed) -> Workload:
    """Return rates that rise from low to high and fall again within a cycle, all together."""
    low = settings.means(np.random.default_rng(seed)) * 2 / (1 + settings.swing)
    high = low * settings.swing
    share = 1 - np.abs(1 - 2 * (settings.times / settings.cycle_s % 1.0))
    metadata = [
        StreamMetadata(
            average=(minimum + maximum) / 2, minimum=minimum, maximum=maximum,
            period_s=settings.cycle_s, transition=Transition.TREND,
        )
        for minimum, maximum in zip(low.tolist(), high.tolist(), strict=True)
    ]  # fmt: skip
    rates = low[:, None] + (high - low)[:, None] * share
    return Workload(rates, tuple(metadata), settings.step_s)


@dataclass(frozen=True)
class StaticCluster(Strategy):
    """A fixed number of split nodes; each stream stays where it starts.

    The streams start in decreasing order of their average rates, each on the least loaded node.
    """

    count: int = parameter(
        32,
        title="Split nodes",
        unit="split nodes",
        help="Number of split nodes.",
        minimum=1,
        maximum=1_024,
    )

    def solve(self, problem: AdmissionProblem, progress: Progress = silent) -> AdmissionPlan:
        """Return the plan: new streams are placed, the others stay."""
        assignment = problem.owner
        if (assignment == NEW).any():
            assignment = _balanced(problem.predictions.average, self.count)
        progress(1.0)
        return AdmissionPlan.of(problem, assignment, max(problem.nodes, int(assignment.max()) + 1))


def _balanced(rates: Floats, nodes: int) -> Ints:
    assignment = np.empty(len(rates), np.int64)
    loads = np.zeros(nodes)
    for stream in np.argsort(-rates, kind="stable").tolist():
        node = int(loads.argmin())
        assignment[stream] = node
        loads[node] += rates[stream]
    return assignment


def measure_interval(
    parameters: Growing, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the measures of each series in one interval of the course of one seed."""
    first = int(parameters.time_s / parameters.period_s)
    if first >= parameters.duration_s // parameters.period_s:
        why = f"the simulation ends after {parameters.duration_s} s, before {parameters.time_s:g} s"
        raise BadParameters({"duration_s": [why]})
    stop = max(first + 1, round((parameters.time_s + parameters.interval_s) / parameters.period_s))
    # The whole course does not depend on the measured interval.
    whole = replace(parameters, time_s=0.0, interval_s=1.0, seeds=1)
    for number, name in enumerate(series):
        report(number / len(series))
        course = _course(whole, seed, name)
        means: dict[str, Any] = {
            measure: np.mean(getattr(course, measure)[first:stop]) for measure in MEASURES
        }
        yield name, means | {"latency_s": max(course.latency_s[first:stop])}


@lru_cache(maxsize=_KEPT_COURSES)
def _course(parameters: Growing, seed: int, name: str) -> Course:
    setting = replace(parameters.setting(), warm_up=0)
    return simulate(parameters.drawn(seed), parameters.strategy(name), setting, seed)


FIG14: Final = Experiment(
    planner=ADMISSION,
    name="fig14",
    title="Latency while the load grows and falls",
    about="Section 6.5, figure 14: the load grows from 4 to 32 split nodes and falls again. "
    "“Longest latency” is that of the interval that starts at the time, the other measures are "
    "means per optimisation period. static is a cluster of a fixed number of split nodes. Series "
    "without consolidation never close a split node. Unlike in the paper, streams are not placed "
    f"randomly at the beginning, but by the strategy. {', '.join(RECORDED)} are recorded: they "
    f"need the data sets in the folder that {DATA_FOLDER} names.",
    x=TIME,
    panels=(Panel("Longest latency", LATENCY), Panel("Split nodes", NODES)),
    parameters=Growing,
    values=tuple(float(100 * number) for number in range(24)),
    series=(
        "ard",
        "ard_consolidated",
        "drf_m",
        "drf_m_consolidated",
        "profile_consolidated",
        STATIC,
    ),
    choices=(*CHOICES, STATIC),
    series_titles={**SERIES_TITLES, STATIC: "Fixed number of split nodes"},
    measures=MEASURES,
    axes=AXES,
    trial=measure_interval,
)
