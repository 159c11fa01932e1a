"""Figures 10 and 11: redirections, buffers, delays and split nodes of the strategies."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from algorithms.admission.planner import ADMISSION
from algorithms.lab.admission.experiments.setup import (
    CHOICES,
    SERIES_TITLES,
    WORKLOAD_NAMES,
    Simulated,
)
from algorithms.lab.admission.real_workloads import RECORDED
from algorithms.lab.admission.simulation import Course, simulate
from algorithms.lab.admission.workloads import WORKLOADS, Workload
from algorithms.lab.datasets import DATA_FOLDER
from algorithms.lab.experiment import Axis, Experiment, Measures, Panel
from algorithms.vocabulary import Progress, parameter

_NUMBERS: Final = ", ".join(f"{number} {name}" for number, name in enumerate(WORKLOAD_NAMES, 1))

REDIRECTIONS: Final = Axis("redirections", "Redirected streams", "streams/period")
BUFFERED: Final = Axis("buffered", "Records buffered by clients", "records/period")
DELAY: Final = Axis("delay_s", "Delay by redirections, summed over records", "s/period")
ABOVE: Final = Axis("above_optimum", "Split nodes above the optimum", "%")
NODES: Final = Axis("nodes", "Split nodes")
OPTIMUM: Final = Axis("optimum", "Optimum", "split nodes")
OVERLOADED: Final = Axis("overloaded", "Overloaded split nodes")
LATENCY: Final = Axis("latency_s", "Longest latency", "s")
WORKLOAD: Final = Axis("workload_number", f"Workload ({_NUMBERS})")
LEVEL: Final = Axis("level", "Load level", "split nodes", log=True)

MEASURES: Final = (
    "redirections", "buffered", "delay_s", "above_optimum", "nodes", "optimum", "overloaded",
    "latency_s",
)  # fmt: skip
AXES: Final = (REDIRECTIONS, BUFFERED, DELAY, ABOVE, NODES, OPTIMUM, OVERLOADED, LATENCY)
SERIES: Final = (
    "par", "ari", "ard", "drf", "drf_m", "drf_m_consolidated", "profile_consolidated",
)  # fmt: skip
_CHOSEN: Final = (
    "Means per optimisation period of a queueing simulation; the first fifth of the time is not "
    "measured. The paper does not state the load level, the period and how long a redirection "
    "lasts. “Optimum” is the lower bound L2 of bin packing; “Longest latency” is the mean of the "
    "longest latency of each period. Series with consolidation close split "
    f"nodes that are nearly empty. {', '.join(RECORDED)} are recorded: they need the data sets in "
    f"the folder that {DATA_FOLDER} names."
)


@dataclass(frozen=True)
class Fluctuating(Simulated, ABC):
    """A workload at a load level."""

    level: float = parameter(
        8.0, title="Load level", unit="split nodes",
        help="Load level: how many split nodes the load saturates on average.",
        minimum=0.5, maximum=32.0,
    )  # fmt: skip
    cycle_s: float = parameter(
        400.0, title="Time between two high rates",
        unit="s", help="Time between two high rates of a stream; of synthetic workloads.",
        minimum=10.0, maximum=14_400.0,
    )  # fmt: skip
    swing: float = parameter(
        3.0, title="High rate over low rate",
        help="High rate divided by low rate; of psfcw, ptfcw, sfvar and tfvar.",
        minimum=1.0, maximum=100.0,
    )  # fmt: skip

    @property
    @abstractmethod
    def name(self) -> str:
        """Return the name of the workload."""

    def drawn(self, seed: int) -> Workload:
        """Draw the workload of one seed. Raises `BadProblem` and `BadParameters` as `draw`."""
        settings = self.settings(self.level, self.cycle_s, self.swing)
        return self.draw(self.name, settings, seed)


@dataclass(frozen=True)
class ByWorkload(Fluctuating):
    """The workload has a number, so that an experiment can compare workloads."""

    workload_number: int = parameter(
        1,
        title="Workload",
        help=f"Number of the workload: {_NUMBERS}.",
        minimum=1,
        maximum=len(WORKLOAD_NAMES),
    )

    @property
    def name(self) -> str:
        """Return the name of the workload."""
        return WORKLOAD_NAMES[self.workload_number - 1]


@dataclass(frozen=True)
class ByLevel(Fluctuating):
    """One workload at several load levels."""

    workload: str = parameter("tfvar", help="Name of the workload.", choices=WORKLOAD_NAMES)

    @property
    def name(self) -> str:
        """Return the name of the workload."""
        return self.workload


def compare_strategies(
    parameters: Fluctuating, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the measures of each series on the workload of one seed."""
    workload, setting = parameters.drawn(seed), parameters.setting()
    for number, name in enumerate(series):
        report(number / len(series))
        yield name, measures(simulate(workload, parameters.strategy(name), setting, seed))


def measures(course: Course) -> Measures:
    """Return the means of a simulation, the share above the optimum in percent."""
    means = course.means()
    means["above_optimum"] *= 100
    return {name: means[name] for name in MEASURES}


_VALUES: Final = tuple(float(number) for number in range(1, len(WORKLOADS) + 1))


FIG10: Final = Experiment(
    planner=ADMISSION,
    name="fig10",
    title="Redirections, buffers and delays by workload",
    about=f"Section 6.2, figure 10: what redirections cost at the clients. {_CHOSEN}",
    x=WORKLOAD,
    panels=(
        Panel("Redirected streams", REDIRECTIONS),
        Panel("Records buffered by clients", BUFFERED),
        Panel("Delay by redirections", DELAY),
    ),
    parameters=ByWorkload,
    values=_VALUES,
    series=SERIES,
    choices=CHOICES,
    series_titles=SERIES_TITLES,
    measures=MEASURES,
    axes=AXES,
    trial=compare_strategies,
)
FIG11: Final = Experiment(
    planner=ADMISSION,
    name="fig11",
    title="Split nodes above the optimum by workload",
    about=f"Section 6.3, figure 11: resource efficiency. {_CHOSEN}",
    x=WORKLOAD,
    panels=(Panel("Split nodes above the optimum", ABOVE), Panel("Split nodes", NODES)),
    parameters=ByWorkload,
    values=_VALUES,
    series=SERIES,
    choices=CHOICES,
    series_titles=SERIES_TITLES,
    measures=MEASURES,
    axes=AXES,
    trial=compare_strategies,
)
LEVELS: Final = Experiment(
    planner=ADMISSION,
    name="levels",
    title="Strategies by load level",
    about="As sections 6.2 and 6.3, on one workload at several load levels, which the paper does "
    f"not show. {_CHOSEN}",
    x=LEVEL,
    panels=(
        Panel("Redirected streams", REDIRECTIONS),
        Panel("Records buffered by clients", BUFFERED),
        Panel("Delay by redirections", DELAY),
        Panel("Split nodes above the optimum", ABOVE),
    ),
    parameters=ByLevel,
    values=(2.0, 4.0, 8.0, 16.0),
    series=SERIES,
    choices=CHOICES,
    series_titles=SERIES_TITLES,
    measures=MEASURES,
    axes=AXES,
    trial=compare_strategies,
)
