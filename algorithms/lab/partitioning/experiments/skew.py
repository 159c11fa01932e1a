"""Figures 4, 6, 7 and 8 of paper 002: imbalance and memory on workers of equal capacity."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.balance import imbalance
from algorithms.lab.experiment import Axis, Experiment, Measures, Panel
from algorithms.lab.partitioning.experiments.setup import (
    BY_KEYS,
    CHOICES,
    CONSISTENT,
    COURSE,
    COURSE_AXES,
    IMBALANCE_TEXT,
    MEMORY,
    RELATIVE_MEMORY,
    SERIES_TITLES,
    SIGNAL_TEXT,
    STEADY,
    STREAM_TEXT,
    TOTAL_IMBALANCE,
    Served,
    Streamed,
    compare_at_end,
)
from algorithms.lab.partitioning.queueing import count_pairs
from algorithms.partitioning.grouping import Messages, Workers
from algorithms.partitioning.planner import PARTITIONING
from algorithms.vocabulary import Progress, parameter, portion

NORMALISED: Final = Axis("imbalance", "Imbalance, as part of all messages", log=True)
_ASSIGNED: Final = ("imbalance", "memory", "memory_ratio")
_ASSIGNED_AXES: Final = (NORMALISED, MEMORY, RELATIVE_MEMORY)
_STRATEGIES: Final = (
    "key", "partial_key", "two_choices", "random_choices", "bounded_load", "shuffle",
)  # fmt: skip
# Messages that are routed at once.
_PART: Final = 1 << 20
_WORD: Final = 64


@dataclass(frozen=True)
class Assigned(Streamed):
    """Messages that are assigned to bins: virtual workers of equal capacity, without queues."""

    virtual: int = parameter(
        100,
        title="Virtual workers",
        unit="bins",
        help="Virtual workers in all.",
        minimum=1,
        maximum=10_000,
    )

    @property
    def bins(self) -> int:
        """Return the number of bins."""
        return self.virtual


@dataclass(frozen=True)
class AssignedByWorkers(Assigned):
    """The same with a number of virtual workers for each worker."""

    virtual: int = parameter(
        10,
        title="Virtual workers",
        unit="per worker",
        help="Virtual workers.",
        minimum=1,
        maximum=1_000,
    )
    workers: int = parameter(10, unit="workers", help="Workers.", minimum=1, maximum=1_000)

    @property
    def bins(self) -> int:
        """Return the number of bins."""
        return self.virtual * self.workers


def compare_assignments(
    parameters: Assigned, seed: int, series: Sequence[str], report: Progress
) -> Iterator[tuple[str, Measures]]:
    """Yield imbalance and memory of each series on the stream of one seed."""
    stream, bins = parameters.drawn(seed), parameters.bins
    keys = len(set(stream.numbers.tolist()))
    for number, name in enumerate(series):
        grouping = parameters.grouping(name)
        done = portion(report, number / len(series), 1 / len(series))
        state, memory = grouping.start(Workers.of(bins)), 0
        loads = np.zeros(bins, np.int64)
        pairs = np.zeros((len(stream.hashes), -(-bins // _WORD)), np.uint64)
        for first in range(0, len(stream), _PART):
            done(first / len(stream))
            numbers = stream.numbers[first : first + _PART]
            workers, state = grouping.route(state, Messages(stream.hashes[numbers]))
            loads += np.bincount(workers, minlength=bins)
            memory += count_pairs(numbers, workers, pairs)
        excess = imbalance(loads.astype(np.float64)) / len(stream)
        yield name, {"imbalance": excess, "memory": memory, "memory_ratio": memory / keys}


FIG4: Final = Experiment(
    planner=PARTITIONING,
    name="fig4",
    title="Imbalance and memory by skew",
    about="Paper 002, section 5.1, figure 4: assignment of keys to virtual workers (bins), by the "
    "exponent of the Zipf law. The paper has 10, 100 and 1,000 bins and 10M messages. Imbalance: "
    "the largest load minus the mean, divided by all messages.",
    x=Axis("z", "Exponent of the Zipf law"),
    panels=(Panel("Imbalance", NORMALISED), Panel("Memory", RELATIVE_MEMORY)),
    parameters=Assigned,
    values=(0.1, 0.4, 0.7, 1.0, 1.3, 1.6, 2.0),
    series=(*_STRATEGIES, "head_aware"),
    choices=tuple(name for name in BY_KEYS if name != CONSISTENT),
    measures=_ASSIGNED,
    axes=_ASSIGNED_AXES,
    trial=compare_assignments,
)
FIG6: Final = Experiment(
    planner=PARTITIONING,
    name="fig6",
    title="Imbalance and memory by slack",
    about="Paper 002, section 7.2, figure 6: 10 workers of equal capacity with 10 virtual workers "
    f"each. {IMBALANCE_TEXT} For “Imbalance since the start” both are of the whole "
    f"stream. {SIGNAL_TEXT} {STREAM_TEXT}",
    x=Axis("eps", "Slack of the load", log=True),
    panels=(
        Panel("Imbalance since the start", TOTAL_IMBALANCE),
        Panel("Memory", RELATIVE_MEMORY),
    ),
    parameters=Served,
    values=(0.001, 0.01, 0.1, 1.0, 10.0),
    series=("key", "shuffle", CONSISTENT),
    choices=CHOICES,
    series_titles=SERIES_TITLES,
    measures=(*COURSE, "memory_ratio"),
    axes=COURSE_AXES,
    trial=compare_at_end,
)
FIG7: Final = Experiment(
    planner=PARTITIONING,
    name="fig7",
    title="Assignment to virtual workers by the number of workers",
    about="Paper 002, section 7.2, figure 7: the assignment alone, 10 virtual workers (bins) per "
    "worker. Imbalance: the largest load of a bin minus the mean, divided by all messages. "
    f"{STREAM_TEXT}",
    x=Axis("workers", "Workers", log=True),
    panels=(Panel("Imbalance", NORMALISED), Panel("Memory", RELATIVE_MEMORY)),
    parameters=AssignedByWorkers,
    values=(5, 10, 50, 100),
    series=(*_STRATEGIES, "head_aware"),
    choices=tuple(name for name in BY_KEYS if name != CONSISTENT),
    measures=_ASSIGNED,
    axes=_ASSIGNED_AXES,
    trial=compare_assignments,
)
FIG8: Final = Experiment(
    planner=PARTITIONING,
    name="fig8",
    title="Groupings by the number of workers",
    about="Paper 002, section 7.2, figure 8: workers of equal capacity, 10 virtual workers each. "
    f"{IMBALANCE_TEXT} “Imbalance since the start” is that of the paper. {SIGNAL_TEXT} "
    f"{STREAM_TEXT}",
    x=Axis("workers", "Workers", log=True),
    panels=(
        Panel("Imbalance since the start", TOTAL_IMBALANCE),
        Panel("Memory", MEMORY),
    ),
    parameters=Served,
    values=(5, 10, 50, 100),
    series=("key", "partial_key", "two_choices", "bounded_load", "shuffle", CONSISTENT, STEADY),
    choices=CHOICES,
    series_titles=SERIES_TITLES,
    measures=(*COURSE, "memory_ratio"),
    axes=COURSE_AXES,
    trial=compare_at_end,
)
