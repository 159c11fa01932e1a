"""Rows of the key microscope: tasks, bars of keys, cells of tasks, and the status of the skew."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from controlplane.planners.partitioning.key_report import (
    GroupingReplay,
    KeyReport,
    KeyShare,
    SkewPoint,
    TaskLoad,
)
from controlplane.svg import LogScale, Scale, round_values
from dashboard.thresholds import GOOD, LOAD, UNKNOWN, WARN

# The keys with a row of their own in the table of tasks.
PLACED_KEYS: Final = 10
# The colours of a cell, beside none.
LEVELS: Final = 5
_HOUR: Final = timedelta(hours=1)
# The distance at which a point still stands for an hour before.
_NEAR: Final = timedelta(minutes=5)
# Times the mean load up to which loads are even.
_EVEN: Final = 1.05
# The share of all records by which the parts of keys may exceed the load of a task.
_TOLERANCE: Final = 0.01
# A share that is rounded to 1 %.
_LEAST: Final = 0.005
_TICKS: Final = 5


@dataclass(frozen=True)
class TaskColumn:
    """A task of a query. `title`: its node, if no other task is there; `note`: what it is part of.

    `capacity`, `rate`: records/s.
    """

    task: int
    node: int
    title: str
    short: str
    note: str
    capacity: float
    rate: float

    @property
    def share(self) -> float:
        """Return the load over the capacity."""
        return self.rate / self.capacity


@dataclass(frozen=True)
class TaskColumns:
    """The tasks of a query. `unit`: node, if each has one of its own, or else task."""

    tasks: Sequence[TaskColumn]
    unit: str

    @property
    def capacity(self) -> float:
        """Return the capacity of all tasks together in records/s."""
        return sum(task.capacity for task in self.tasks)

    @property
    def mean(self) -> float:
        """Return the load of all tasks together over their capacity."""
        return sum(task.rate for task in self.tasks) / self.capacity

    @property
    def fullest(self) -> TaskColumn:
        """Return the task with the largest load over its capacity."""
        return max(self.tasks, key=lambda task: task.share)

    @property
    def largest(self) -> float:
        """Return the capacity of the largest task in records/s: no task holds a larger key."""
        return max(task.capacity for task in self.tasks)

    def is_overloaded_by(self, key: KeyShare) -> bool:
        """Return whether the records of a key exceed the capacity of a task."""
        parts = ((task.capacity, key.tasks.get(task.task, 0.0)) for task in self.tasks)
        return any(share * key.records_per_s > capacity for capacity, share in parts)


@dataclass(frozen=True)
class BarScales:
    """The widths of bars of records/s, linear and by powers of ten."""

    linear: Scale[float]
    log: LogScale

    @property
    def ticks(self) -> list["Tick"]:
        """Return round rates on the linear scale, and the powers of ten on the other one."""
        low, high = (math.log10(end) for end in (self.log.low, self.log.high))
        powers = [10.0**power for power in range(round(low), math.floor(high) + 1)]
        rates = round_values(0.0, self.linear.high, _TICKS)
        return [
            *(Tick(rate, self.linear.percent(rate), "") for rate in rates),
            *(Tick(rate, "", self.log.percent(rate)) for rate in powers),
        ]


@dataclass(frozen=True)
class KeyBar:
    """A key with the widths of its bar; `running`: the share of it and all more frequent keys.

    `overloads`: its records at a task exceed the capacity of that task.
    """

    key: KeyShare
    running: float
    linear: str
    log: str
    overloads: bool


@dataclass(frozen=True)
class Tick:
    """A rate on the axes of bars, with its place on either scale, "" where it is not on it."""

    rate: float
    linear: str
    log: str


@dataclass(frozen=True)
class KeyBars:
    """The bars of the most frequent keys; `limit`: the records/s that the largest task holds."""

    bars: Sequence[KeyBar]
    ticks: Sequence[Tick]
    limit: Tick
    listed: float


@dataclass(frozen=True)
class ShareCell:
    """The share of a key's records at a task, None for none; `level`: of its colour."""

    share: float | None

    @property
    def level(self) -> int:
        """Return the level of the colour, 0 for no records."""
        return min(LEVELS, math.ceil(LEVELS * self.share)) if self.share else 0

    @property
    def text(self) -> str:
        """Return the share in per cent, "" for none."""
        if not self.share:
            return ""
        return f"{100 * self.share:.0f}" if self.share >= _LEAST else "<1"


@dataclass(frozen=True)
class PlaceRow:
    """A key, and the shares of its records by task.

    `others`: the number of keys in one row; `known`: False if the records of the last minute are
    too few to know their tasks.
    """

    label: str
    cells: Sequence[ShareCell]
    tasks: float
    others: int = 0
    known: bool = True


@dataclass(frozen=True)
class KeyStatus:
    """The skew against the limit of the policy.

    `mean`: the load of all tasks together over their capacity. `imbalance`, `limit`: shares of
    capacity. `exceeds`: the largest key exceeds what any task holds; `overloads`: its records at a
    task do. `better`: the recommended grouping if it is not in use; `saved`: the share of the
    present memory that it saves, negative if it needs more.
    """

    grade: str
    largest: KeyShare | None
    fullest: TaskColumn
    mean: float
    imbalance: float
    limit: float
    exceeds: bool
    overloads: bool
    better: GroupingReplay | None
    saved: float

    @property
    def ratio(self) -> float:
        """Return the load of the fullest task over the mean."""
        return self.fullest.share / self.mean if self.mean else 1.0

    @property
    def is_even(self) -> bool:
        """Return whether the fullest task has about the mean load."""
        return self.ratio < _EVEN

    @property
    def added(self) -> float:
        """Return the share of the present memory that the better grouping needs in addition."""
        return -self.saved

    @property
    def imbalance_grade(self) -> str:
        """Return the grade of the imbalance."""
        return imbalance_grade(self.imbalance, self.limit)

    @property
    def load_grade(self) -> str:
        """Return the grade of the fullest task."""
        return LOAD.grade(self.fullest.share)


@dataclass(frozen=True)
class HourlyChange:
    """The changes within an hour, None where the figure of that time is not known."""

    top_share: float | None = None
    imbalance: float | None = None


def columns_of(loads: Sequence[TaskLoad]) -> TaskColumns:
    """Return the columns of tasks; of nodes where each task has a node of its own."""
    by_node = len({load.node for load in loads}) == len(loads)
    tasks = [
        TaskColumn(
            load.task, load.node,
            load.node_name if by_node else f"task {load.task}",
            str(load.node if by_node else load.task),
            "" if by_node else load.node_name,
            load.capacity, load.records_per_s,
        )
        for load in loads
    ]  # fmt: skip
    return TaskColumns(tasks, "node" if by_node else "task")


def key_bars(report: KeyReport, columns: TaskColumns) -> KeyBars:
    """Return the bars of the most frequent keys, with the capacity of the largest task."""
    scale = _scale_of(report.keys, columns.largest)
    bars = list(_bars(report.keys, scale, columns))
    shown = columns.largest <= scale.linear.high
    limit = Tick(
        columns.largest,
        scale.linear.percent(columns.largest) if shown else "",
        scale.log.percent(columns.largest),
    )
    return KeyBars(bars, scale.ticks, limit, bars[-1].running if bars else 0.0)


def _bars(keys: Sequence[KeyShare], scale: BarScales, columns: TaskColumns) -> Iterator[KeyBar]:
    running = 0.0
    for key in keys:
        running += key.share
        rate = key.records_per_s
        yield KeyBar(
            key,
            running,
            scale.linear.percent(rate),
            scale.log.percent(rate),
            columns.is_overloaded_by(key),
        )


def _scale_of(keys: Sequence[KeyShare], holds: float) -> BarScales:
    """Return a scale of all keys; the linear one has the capacity unless it is far above them."""
    rates = [key.records_per_s for key in keys if key.records_per_s > 0] or [1.0]
    top = max(rates)
    near = holds <= 2 * top
    low = 10.0 ** math.floor(math.log10(min(rates)) - 1e-9)
    linear = Scale(0.0, 1.08 * max(top, holds if near else 0.0))
    return BarScales(linear, LogScale(low, 1.3 * max(top, holds)))


def place_rows(report: KeyReport, columns: TaskColumns) -> list[PlaceRow]:
    """Return the shares of the records of each key by task, all other keys in the last row."""
    keys = report.keys[:PLACED_KEYS]
    rows = [
        PlaceRow(
            key.label,
            [ShareCell(key.tasks.get(task.task) or None) for task in columns.tasks],
            sum(share > 0 for share in key.tasks.values()),
        )
        for key in keys
    ]
    others = report.distinct - len(keys)
    if others > 0:
        rows.append(_others_row(report, columns, keys, others))
    return rows


def _others_row(
    report: KeyReport, columns: TaskColumns, keys: Sequence[KeyShare], others: int
) -> PlaceRow:
    rest = [
        task.rate - sum(key.records_per_s * key.tasks.get(task.task, 0.0) for key in keys)
        for task in columns.tasks
    ]
    pairs = report.memory - sum(len([s for s in key.tasks.values() if s > 0]) for key in keys)
    # Shares are of ten minutes, tasks and rates of the last: of few records they do not fit.
    known = min(rest) >= -_TOLERANCE * report.records_per_s
    total = sum(max(0.0, rate) for rate in rest) if known else 0.0
    cells = [ShareCell(rate / total if total and rate > 0 else None) for rate in rest]
    return PlaceRow("", cells, max(1.0, pairs / others), others, known)


def status_of(report: KeyReport, columns: TaskColumns, limit: float) -> KeyStatus:
    """Return the status of the skew: the limit is the policy's, near it is as for loads."""
    largest = report.keys[0] if report.keys else None
    overloads = largest is not None and columns.is_overloaded_by(largest)
    better = next((item for item in report.groupings if item.recommended and not item.in_use), None)
    present = next((item.memory for item in report.groupings if item.in_use), report.memory)
    return KeyStatus(
        grade=_grade(report, limit, overloads=overloads),
        largest=largest,
        fullest=columns.fullest,
        mean=columns.mean,
        imbalance=report.imbalance,
        limit=limit,
        exceeds=largest is not None and largest.records_per_s > columns.largest,
        overloads=overloads,
        better=better,
        saved=1 - better.memory / present if better and present else 0.0,
    )


def _grade(report: KeyReport, limit: float, *, overloads: bool) -> str:
    if report.sampled_at is None or not report.records_per_s:
        return UNKNOWN
    grade = LOAD.grade(report.imbalance / limit if limit else None)
    return WARN if overloads and grade == GOOD else grade


def imbalance_grade(imbalance: float, limit: float) -> str:
    """Return bad above the limit, and warn near it."""
    return LOAD.grade(imbalance / limit) if limit else UNKNOWN


def trend_of(history: Sequence[SkewPoint]) -> HourlyChange:
    """Return the changes of the newest point since an hour before."""
    if not history:
        return HourlyChange()
    newest = history[-1]
    before = min(history, key=lambda point: abs(newest.time - _HOUR - point.time))
    if abs(newest.time - _HOUR - before.time) > _NEAR:
        return HourlyChange()
    return HourlyChange(newest.top_share - before.top_share, newest.imbalance - before.imbalance)
