"""Small charts of what each key grouping would give: load by task, against capacity and limit."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from algorithms.partitioning.catalog import GROUPINGS, fields_of
from algorithms.vocabulary import title_of_name
from controlplane.numbers import lowered, result
from controlplane.planners.partitioning.key_report import GroupingReplay, KeyReport
from controlplane.svg import percent
from dashboard.queries.key_rows import TaskColumn, TaskColumns, imbalance_grade

# The heights of charts end at round shares of capacity: these times a power of ten.
_ROUND: Final = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
# A limit that is further above all loads than this is not drawn: it would flatten them.
_NEAR: Final = 3.0
# The part of a drawing above the labels of its bars, and the widths of all gaps, in per cent.
_PLOT: Final = 86.0
_GAPS: Final = 12.0
_WIDEST_GAP: Final = 1.2
_LABELS: Final = 16


@dataclass(frozen=True)
class LoadBar:
    """A task's bar in per cent of the drawing: as wide as its capacity, as high as its load.

    `track`: the top of its capacity; `label`: "" where there is no room.
    """

    task: TaskColumn
    share: float
    x: str
    width: str
    middle: str
    y: str
    height: str
    track_y: str
    track_height: str
    label: str
    exceeds: bool


@dataclass(frozen=True)
class GroupingCard:
    """A grouping with the bars of its loads; `fullest`: the largest load over capacity.

    `about`: what it does, `parameters`: those that differ from their defaults.
    """

    replay: GroupingReplay
    bars: Sequence[LoadBar]
    fullest: float
    grade: str
    about: str
    parameters: str


@dataclass(frozen=True)
class GroupingCharts:
    """The charts of all groupings with one scale.

    `top`: the share of capacity at their upper end; `mean`, `limit`: shares of capacity, with their
    heights in the drawings; the height of a limit far above all loads is "".
    """

    cards: Sequence[GroupingCard]
    top: float
    mean: float
    mean_y: str
    limit: float
    limit_y: str


def grouping_charts(report: KeyReport, columns: TaskColumns, limit: float) -> GroupingCharts:
    """Return the charts; `limit`: of the imbalance, a share of capacity."""
    replays = [item for item in report.groupings if len(item.loads) == len(columns.tasks)]
    shares = [_shares(item, report, columns) for item in replays]
    highest = max((max(row) for row in shares), default=0.0)
    edge = columns.mean + limit
    near = edge <= _NEAR * highest
    top = _round_up(1.05 * max(highest, columns.mean, edge if near else 0.0))
    return GroupingCharts(
        [
            GroupingCard(
                replay=item,
                bars=list(_bars(row, columns, top, edge)),
                fullest=max(row),
                grade=imbalance_grade(item.imbalance, limit),
                about=GROUPINGS[item.name].about if item.name in GROUPINGS else "",
                parameters=parameters_text(item),
            )
            for item, row in zip(replays, shares, strict=True)
        ],
        top, columns.mean, _y(columns.mean, top), edge, _y(edge, top) if near else "",
    )  # fmt: skip


def parameters_text(replay: GroupingReplay) -> str:
    """Return the parameters that differ from their defaults."""
    titles = {field.name: field.title for field in fields_of(replay.name)}
    named = (
        (lowered(titles.get(name) or title_of_name(name)), value)
        for name, value in replay.parameters.items()
    )
    return ", ".join(
        title if value is True else f"{title} {_value(value)}" for title, value in named
    )


def _value(value: Any) -> str:
    return "no" if value is False else result(value)


def _shares(replay: GroupingReplay, report: KeyReport, columns: TaskColumns) -> list[float]:
    pairs = zip(replay.loads, columns.tasks, strict=True)
    return [load * report.records_per_s / task.capacity for load, task in pairs]


def _bars(
    shares: Sequence[float], columns: TaskColumns, top: float, edge: float
) -> Iterator[LoadBar]:
    count = len(columns.tasks)
    gap = min(_WIDEST_GAP, _GAPS / count)
    room = 100.0 - gap * (count - 1)
    step = -(-count // _LABELS)
    x = 0.0
    for place, (share, task) in enumerate(zip(shares, columns.tasks, strict=True)):
        width = room * task.capacity / columns.capacity
        capacity = min(1.0, top)
        yield LoadBar(
            task, share,
            percent(x, 100), percent(width, 100), percent(x + width / 2, 100),
            _y(share, top), percent(_PLOT * min(share, top) / top, 100),
            _y(capacity, top), percent(_PLOT * capacity / top, 100),
            task.short if place % step == 0 else "",
            share > edge,
        )  # fmt: skip
        x += width + gap


def _y(share: float, top: float) -> str:
    return percent(_PLOT * (1 - min(share, top) / top), 100)


def _round_up(share: float) -> float:
    """Return the next round share, 0.01 at least."""
    if share <= 0.01:  # noqa: PLR2004 - nothing smaller is readable
        return 0.01
    power = 10.0 ** math.floor(math.log10(share))
    return next(factor * power for factor in _ROUND if factor * power >= share)
