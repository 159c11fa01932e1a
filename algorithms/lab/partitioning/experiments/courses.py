"""Figures 9, 10 and 13 of paper 002: queues, latency and utilisation over time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from algorithms.lab.experiment import Axis, Experiment, Measures, Panel
from algorithms.lab.partitioning.experiments.setup import (
    CHOICES,
    CONSISTENT,
    COURSE,
    COURSE_AXES,
    IMBALANCE_TEXT,
    LATENCY,
    MOVES,
    QUEUE,
    SERIES_TITLES,
    SIGNAL_TEXT,
    STEADY,
    STREAM_TEXT,
    UTILISATION,
    Served,
    fast_workers,
    measures_of,
    virtual_workers,
)
from algorithms.lab.partitioning.simulation import Cluster, Course
from algorithms.partitioning.planner import PARTITIONING
from algorithms.vocabulary import Progress, parameter, portion

PART: Final = Axis("part", "Part of the stream", "%")
# Points of a course; all are measured in one simulation, and the points of one run share it.
_SAMPLES: Final = 200
_KEPT_COURSES: Final = 64
_PANELS: Final = (
    Panel("Queue length", QUEUE),
    Panel("Latency", LATENCY),
    Panel("Utilisation", UTILISATION),
    Panel("Moves", MOVES),
)
_SPREAD_TEXT: Final = (
    "Each measure is the largest minus the smallest of all workers, over the last 0.5 % of the "
    "stream before each point."
)


@dataclass(frozen=True)
class InTime(Served):
    """A course that is measured at one point."""

    part: float = parameter(
        100.0, title="Part of the stream",
        unit="%", help="Part of the stream after which is measured.",
        minimum=100 / _SAMPLES, maximum=100.0,
    )  # fmt: skip


@dataclass(frozen=True)
class Unequal(InTime):
    """The same on workers of different capacity."""

    fast: int = fast_workers()


@dataclass(frozen=True)
class Changing(Unequal):
    """The same where capacities change twice."""

    virtual: int = virtual_workers()
    messages: int = parameter(
        2_200_000, unit="messages",
        help="Length of the stream; capacities change after 6/22 and 12/22 of it.",
        minimum=1_000, maximum=22_000_000,
    )  # fmt: skip

    def cluster(self) -> Cluster:
        """Return the workers: {y, z} is {fast, times}, then {5, 4}, then {2, 10}, as far as n."""
        changes = [
            (self.messages * start // 22, self._weights(min(fast, self.workers), times))
            for start, fast, times in ((6, 5, 4.0), (12, 2, 10.0))
        ]
        return Cluster.of(self._weights(self.fast, self.times), self.used, changes)

    def _weights(self, fast: int, times: float) -> list[float]:
        return [times] * fast + [1.0] * (self.workers - fast)


def measure_point(
    parameters: InTime, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield the measures of each series at one point of the course of one seed."""
    whole = replace(parameters, part=100.0, seeds=1)
    point = max(0, round(parameters.part / 100 * min(_SAMPLES, whole.messages)) - 1)
    for number, name in enumerate(series):
        progress = portion(report, number / len(series), 1 / len(series))
        progress(0.0)
        yield name, measures_of(_course(whole, seed, name), point)


@lru_cache(maxsize=_KEPT_COURSES)
def _course(parameters: InTime, seed: int, name: str) -> Course:
    return parameters.course(parameters.drawn(seed), name, _SAMPLES, lambda _: None)


_VALUES: Final = tuple(float(5 * number) for number in range(1, 21))
FIG9: Final = Experiment(
    planner=PARTITIONING,
    name="fig9",
    title="Queues over time on equal workers",
    about="Paper 002, section 7.2, figure 9: 10 workers of equal capacity, used at 80 % by shuffle "
    f"grouping. {_SPREAD_TEXT} {IMBALANCE_TEXT} {SIGNAL_TEXT} {STREAM_TEXT}",
    x=PART,
    panels=_PANELS,
    parameters=InTime,
    values=_VALUES,
    series=("key", CONSISTENT, STEADY),
    choices=CHOICES,
    series_titles=SERIES_TITLES,
    measures=COURSE,
    axes=COURSE_AXES,
    trial=measure_point,
)
FIG10: Final = Experiment(
    planner=PARTITIONING,
    name="fig10",
    title="Queues over time on unequal workers",
    about="Paper 002, section 7.2, figure 10: 10 workers, three of them 5 times as fast. "
    f"{_SPREAD_TEXT} {IMBALANCE_TEXT} {SIGNAL_TEXT} {STREAM_TEXT}",
    x=PART,
    panels=_PANELS,
    parameters=Unequal,
    values=_VALUES,
    series=("key", "shuffle", CONSISTENT, STEADY),
    choices=CHOICES,
    series_titles=SERIES_TITLES,
    measures=COURSE,
    axes=COURSE_AXES,
    trial=measure_point,
)
FIG13: Final = Experiment(
    planner=PARTITIONING,
    name="fig13",
    title="Queues while capacities change",
    about="Paper 002, section 7.2, figure 13: 10 workers, three of them 5 times as fast, then five "
    "4 times, then two 10 times; the sum of all capacities stays the same. In the paper after 6M "
    f"and 12M of 22M messages. {_SPREAD_TEXT} {IMBALANCE_TEXT} {SIGNAL_TEXT} {STREAM_TEXT}",
    x=PART,
    panels=_PANELS,
    parameters=Changing,
    values=_VALUES,
    series=("key", "shuffle", CONSISTENT, STEADY),
    choices=CHOICES,
    series_titles=SERIES_TITLES,
    measures=COURSE,
    axes=COURSE_AXES,
    trial=measure_point,
)
