"""Figures 11 and 12 of paper 002: sources and virtual workers, and time slots beside them."""

from dataclasses import dataclass
from typing import Final

from algorithms.lab.experiment import Axis, Experiment, Panel
from algorithms.lab.partitioning.experiments.setup import (
    CHOICES,
    CONSISTENT,
    COURSE,
    COURSE_AXES,
    IMBALANCE,
    IMBALANCE_TEXT,
    LATENCY,
    MEMORY,
    MOVES,
    QUEUE,
    SERIES_TITLES,
    SIGNAL_TEXT,
    STEADY,
    STREAM_TEXT,
    TOTAL_IMBALANCE,
    UTILISATION,
    Served,
    compare_at_end,
    fast_workers,
    virtual_workers,
)
from algorithms.partitioning.planner import PARTITIONING

_MEASURES: Final = (*COURSE, "memory_ratio")
_END_TEXT: Final = "Measured at the end, over the last tenth of the stream."


@dataclass(frozen=True)
class UnequalWorkers(Served):
    """Workers of different capacity."""

    fast: int = fast_workers()
    virtual: int = virtual_workers()


FIG11: Final = Experiment(
    planner=PARTITIONING,
    name="fig11",
    title="Consistent grouping by the number of sources",
    about="Paper 002, section 7.2, figure 11: workers of equal capacity, each source with a view "
    "of its own. The paper has 5, 10, 50 and 100 workers. “Imbalance since the start” is that "
    f"of the paper. {_END_TEXT} {IMBALANCE_TEXT} {SIGNAL_TEXT} {STREAM_TEXT}",
    x=Axis("sources", "Sources", log=True),
    panels=(
        Panel("Imbalance since the start", TOTAL_IMBALANCE),
        Panel("Memory", MEMORY),
    ),
    parameters=Served,
    values=(1, 10, 50, 100),
    series=(CONSISTENT, STEADY),
    choices=CHOICES,
    series_titles=SERIES_TITLES,
    measures=_MEASURES,
    axes=COURSE_AXES,
    trial=compare_at_end,
)
FIG12: Final = Experiment(
    planner=PARTITIONING,
    name="fig12",
    title="Consistent grouping by the number of virtual workers",
    about="Paper 002, section 7.2, figure 12: 10 workers, three of them 5 times as fast. The best "
    f"number of virtual workers depends on the time slot. {_END_TEXT} {IMBALANCE_TEXT} "
    f"{SIGNAL_TEXT} {STREAM_TEXT}",
    x=Axis("virtual", "Virtual workers", "per worker", log=True),
    panels=(
        Panel("Queue length", QUEUE),
        Panel("Latency", LATENCY),
        Panel("Utilisation", UTILISATION),
        Panel("Moves", MOVES),
    ),
    parameters=UnequalWorkers,
    values=(5, 10, 20, 50, 100, 1_000),
    series=(CONSISTENT, STEADY),
    choices=(CONSISTENT, STEADY),
    series_titles=SERIES_TITLES,
    measures=_MEASURES,
    axes=COURSE_AXES,
    trial=compare_at_end,
)
SLOTS: Final = Experiment(
    planner=PARTITIONING,
    name="slots",
    title="Consistent grouping by the time slot",
    about="As section 7.2 of paper 002, figure 12, by the time slot, which the paper does not "
    f"state. {_END_TEXT} {IMBALANCE_TEXT} {SIGNAL_TEXT} {STREAM_TEXT}",
    x=Axis("slot", "Time slot", "messages", log=True),
    panels=(Panel("Imbalance", IMBALANCE), Panel("Memory", MEMORY), Panel("Moves", MOVES)),
    parameters=UnequalWorkers,
    values=(500, 1_000, 2_000, 5_000, 10_000, 20_000),
    series=(CONSISTENT, STEADY),
    choices=(CONSISTENT, STEADY),
    series_titles=SERIES_TITLES,
    measures=_MEASURES,
    axes=COURSE_AXES,
    trial=compare_at_end,
)
