"""Gantt charts of executions: the transfers of each link, planned and measured."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from controlplane import numbers
from controlplane.models import Execution, Step
from controlplane.plans.plan import Plan, TaskMove
from controlplane.svg import Scale, percent

# Links that are shown, and steps around the present one.
MAX_LANES: Final = 10
MAX_STEPS: Final = 24
_OTHERS: Final = "other actions"
# Kinds of bars, which are their classes in the style sheet.
_PLAN: Final = "plan"
_DONE: Final = "done"
_LATE: Final = "done late"


@dataclass(frozen=True)
class Bar:
    """A transfer: its position and width in the lane (SVG lengths), its kind, and its text."""

    x: str
    width: str
    kind: str
    text: str


@dataclass(frozen=True)
class Lane:
    """The transfers of one link, by their start; `step_ends`: positions, `now`: "" outside."""

    name: str
    bars: Sequence[Bar]
    step_ends: Sequence[str]
    now: str


@dataclass(frozen=True)
class Gantt:
    """The transfers of an execution; `ticks`: times; `hidden`: links that are not shown."""

    lanes: Sequence[Lane]
    ticks: Sequence[datetime]
    hidden: int
    first_step: int
    last_step: int
    steps: int

    @property
    def label(self) -> str:
        """Return how many of the planned transfers were measured, and how many took longer."""
        kinds = Counter(bar.kind for lane in self.lanes for bar in lane.bars)
        done = sum(count for kind, count in kinds.items() if kind != _PLAN)
        links = numbers.counted(len(self.lanes), "links")
        return (
            f"Transfers of {links}: {done} of {kinds[_PLAN]} planned ones measured,"
            f" {kinds[_LATE]} longer than planned"
        )


@dataclass
class _StepTransfers:
    """Actions [first, stop) from `begin` until `end`."""

    number: int
    first: int
    stop: int
    begin: datetime
    end: datetime
    links: Counter[str] = field(default_factory=Counter)
    is_done: bool = True


def gantt_of(execution: Execution, plan: Plan, now: datetime) -> Gantt | None:
    """Return the chart of an execution that applies its actions, None without planned steps."""
    if not execution.planned_stops:
        return None
    planned = list(_planned(execution))
    done = list(_measured(execution, now))
    first, last = _window(len(planned), len(done))
    planned, done = (
        planned[first:last],
        [transfer for transfer in done if first < transfer.number <= last],
    )
    for transfer in (*planned, *done):
        transfer.links = _links(plan, transfer)
    begin = min(transfer.begin for transfer in (*planned, *done))
    end = max(transfer.end for transfer in (*planned, *done))
    links = _ranked(planned, done)
    lanes = [_lane(name, planned, done, begin, end, now) for name in links[:MAX_LANES]]
    ticks = [begin + (end - begin) * part / 4 for part in range(5)]
    return Gantt(
        lanes, ticks, max(0, len(links) - MAX_LANES), first + 1, last, len(execution.planned_stops)
    )


def _planned(execution: Execution) -> Iterator[_StepTransfers]:
    step = timedelta(seconds=max(0.1, execution.planned_step_s))
    for number, (first, stop) in enumerate(pairwise([0, *execution.planned_stops])):
        begin = execution.started_at + number * step
        yield _StepTransfers(number + 1, first, stop, begin, begin + step)


def _measured(execution: Execution, now: datetime) -> Iterator[_StepTransfers]:
    rows = execution.steps.filter(direction=Execution.Direction.FORWARD).order_by("number")
    for row in rows.only("number", "first", "stop", "state", "published_at", "acknowledged_at"):
        end = row.acknowledged_at or now
        done = row.state == Step.State.DONE
        yield _StepTransfers(row.number, row.first, row.stop, row.published_at, end, is_done=done)


def _window(planned: int, done: int) -> tuple[int, int]:
    """Return the range of steps around the present one."""
    if planned <= MAX_STEPS:
        return 0, max(planned, done)
    first = min(max(0, done - MAX_STEPS // 2), planned - MAX_STEPS)
    return first, first + MAX_STEPS


def _links(plan: Plan, transfer: _StepTransfers) -> Counter[str]:
    """Return the bytes of each link among the actions of a step, at least 1 for each action."""
    links: Counter[str] = Counter()
    for planned in plan[transfer.first : transfer.stop]:
        name = _OTHERS
        if isinstance(planned, TaskMove):
            name = f"{planned.source} → {planned.target}"
        links[name] += planned.bytes + 1
    return links


def _ranked(planned: Sequence[_StepTransfers], done: Sequence[_StepTransfers]) -> list[str]:
    sizes: Counter[str] = Counter()
    for transfer in planned or done:
        sizes.update(transfer.links)
    return [name for name, _ in sizes.most_common()]


def _lane(
    name: str,
    planned: Sequence[_StepTransfers],
    done: Sequence[_StepTransfers],
    begin: datetime,
    end: datetime,
    now: datetime,
) -> Lane:
    scale = Scale(begin, end)
    lengths = {transfer.number: transfer.end - transfer.begin for transfer in planned}
    bars = [
        *((transfer, _PLAN) for transfer in planned),
        *((transfer, _kind(transfer, lengths.get(transfer.number))) for transfer in done),
    ]
    bars.sort(key=lambda item: item[0].begin)
    drawn = [_bar(item, name, kind, scale) for item, kind in bars if name in item.links]
    shown = scale.percent(now) if begin <= now <= end else ""
    return Lane(name, drawn, [scale.percent(transfer.end) for transfer in planned], shown)


def _bar(transfer: _StepTransfers, name: str, kind: str, scale: Scale[datetime]) -> Bar:
    sort = "planned" if kind == _PLAN else "measured" if transfer.is_done else "in progress"
    took = numbers.seconds((transfer.end - transfer.begin).total_seconds())
    size = numbers.size(max(0, transfer.links[name] - 1))
    width = max(0.004, scale(transfer.end) - scale(transfer.begin))
    text = f"Step {transfer.number}, {sort}: {size}, {took}"
    return Bar(scale.percent(transfer.begin), percent(width), kind, text)


def _kind(transfer: _StepTransfers, planned: timedelta | None) -> str:
    """Return the kind of a measured transfer: late if it took a fifth longer than planned."""
    is_late = planned is not None and transfer.end - transfer.begin > 1.2 * planned
    return _LATE if is_late else _DONE


def tick_texts(gantt: Gantt) -> list[str]:
    """Return the times of the axis in UTC."""
    return [f"{tick.astimezone(UTC):%H:%M:%S}" for tick in gantt.ticks]
