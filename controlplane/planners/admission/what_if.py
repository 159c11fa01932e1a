"""What if a stream were admitted: its split node, head-room by hour, and the first overload."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Final

import numpy as np
from django.utils import timezone

from algorithms.admission.metadata import StreamMetadata, averages
from algorithms.admission.problem import NEW, StreamTooLarge
from algorithms.admission.strategies import Profile
from algorithms.vocabulary import Floats
from controlplane.catalog.characteristics import PREFIX
from controlplane.catalog.split_reading import reading_of
from controlplane.errors import Invalid
from controlplane.models import Cluster
from controlplane.planners.admission.inputs import AdmittedStream
from controlplane.planners.admission.observation import read_input
from controlplane.planners.admission.problem import Outlook, SplitProblem, split_problem
from controlplane.telemetry.arrivals import history
from controlplane.wire.routing.split_assignment import SplitShares

FIVE_MINUTES: Final = 300
# Two days of periods of five minutes are replayed.
REPLAYED: Final = 576
_HOURS: Final = 24
# The id of the new stream; ids of rows begin with 1.
_ID: Final = 0


@dataclass(frozen=True)
class HourHeadroom:
    """The records/s that stay free on the split node in an hour of the day (UTC).

    `least`, `mean`: over the replayed periods of the hour; negative: overloaded. `periods`: how
    many there are.
    """

    hour: int
    least: float
    mean: float
    periods: int


@dataclass(frozen=True)
class SplitNodeReplay:
    """The stream on a split node, replayed against the past rates of the others.

    `headroom`: by hour, without hours that are not known. `probability`: the share of replayed
    periods with an overload, None without any; `first_overload`: the start of the next hour with
    one, None for none.
    """

    split: int
    headroom: Sequence[HourHeadroom]
    probability: float | None
    first_overload: datetime | None


@dataclass(frozen=True)
class WhatIf:
    """What the admission of a stream would do.

    `split`: the index of its split node, `opened`: whether it is opened for it. `capacity`, `load`:
    records/s of the split node, and the expected load with the stream. `chosen`: its replay there;
    `others`: on the other open split nodes.
    """

    split: int
    opened: bool
    capacity: float
    load: float
    chosen: SplitNodeReplay
    others: Sequence[SplitNodeReplay]


def admit(cluster: Cluster, metadata: StreamMetadata, now: datetime | None = None) -> WhatIf:
    """Return what the admission of a stream with these characteristics would do; changes nothing.

    What is not known of it is the average of the other streams. Raises `Invalid` for a stream that
    no split node can read, and `Conflict` no_capacity.
    """
    given = read_input(cluster)
    reading = reading_of(cluster)
    usual = averages([StreamMetadata.from_json(s.characteristics) for s in given.streams])
    known = metadata.with_defaults(usual)
    new = AdmittedStream(_ID, "the new stream", [], known.to_json(), {})
    with_new = replace(given, streams=[*given.streams, new])
    present = replace(reading.assignment, splits={**reading.assignment.splits, _ID: NEW})
    split = split_problem(with_new, present, Outlook(), cut=True)
    rates = _Rates.of(known, float(split.problem.predictions.average[-1]))
    if rates.high > given.capacity:
        large = StreamTooLarge("the new stream", rates.high, given.capacity)
        raise Invalid({PREFIX: [str(large)]})
    node = _place(split)
    opened = node >= len(split.splits)
    index = _lowest_free(split.splits) if opened else split.splits[node]
    loads = split.problem.loads(split.problem.predictions.expected).max(axis=1)
    replay = _Replay(cluster, reading.shares(), given.capacity, rates, now or timezone.now())
    return WhatIf(
        split=index,
        opened=opened,
        capacity=given.capacity,
        load=round(rates.high + (0.0 if opened else float(loads[node])), 3),
        chosen=replay.on(index),
        others=[replay.on(other) for other in split.splits if other != index],
    )


class _Replay:
    """The past rates of a cluster, for the replay of a new stream on its split nodes."""

    def __init__(
        self,
        cluster: Cluster,
        shares: SplitShares,
        capacity: float,
        rates: "_Rates",
        now: datetime,
    ) -> None:
        known = history(cluster, REPLAYED, FIVE_MINUTES, list(shares))
        self._rates = np.nan_to_num(known.rates)
        self._shares = [shares[stream] for stream in known.streams.tolist()]
        self._starts, self._capacity, self._new, self._now = known.starts, capacity, rates, now

    def on(self, split: int) -> SplitNodeReplay:
        """Return the replay on a split node."""
        parts = np.array([own.get(split, 0.0) for own in self._shares])
        free = self._capacity - (parts[:, None] * self._rates).sum(axis=0)
        hours = _by_hour(free, self._starts, self._new)
        probability = _probability(free, self._new) if len(self._starts) else None
        return SplitNodeReplay(split, hours, probability, _first_overload(hours, self._now))


@dataclass(frozen=True)
class _Rates:
    """The usual and the highest rate of a new stream, and the share of time at the highest."""

    usual: float
    high: float
    high_share: float

    @classmethod
    def of(cls, known: StreamMetadata, usual: float) -> "_Rates":
        high = max(usual, known.largest or 0.0)
        share = 1.0
        if known.period_s and known.high_s is not None:
            share = known.high_s / known.period_s
        elif known.burst_s is not None and known.pause_s is not None:
            share = known.burst_s / max(known.burst_s + known.pause_s, 1e-9)
        return cls(usual, high, share)


def _place(split: SplitProblem) -> int:
    """Return the split node that the packing by profiles chooses; other streams stay."""
    problem, strategy = split.problem, Profile(foresee=True)
    sizes = strategy.limited_sizes(problem)
    overloaded = strategy.is_overloaded(problem, problem.loads(sizes))
    plan = strategy.place(problem, sizes, problem.owner == NEW, overloaded)
    return int(plan.assignment[-1])


def _lowest_free(taken: Sequence[int]) -> int:
    return next(index for index in count() if index not in taken)


def _by_hour(free: Floats, starts: Sequence[datetime], rates: _Rates) -> list[HourHeadroom]:
    """Return the head-room of each hour of the day with a replayed period, by hour."""
    hours = np.array([start.hour for start in starts], np.int64)
    return [
        HourHeadroom(
            hour,
            round(float(free[hours == hour].min()) - rates.high, 3),
            round(float(free[hours == hour].mean()) - rates.usual, 3),
            int((hours == hour).sum()),
        )
        for hour in np.unique(hours).tolist()
    ]


def _probability(free: Floats, rates: _Rates) -> float:
    """Return the share of replayed time in which the split node is overloaded."""
    high, usual = float((free < rates.high).mean()), float((free < rates.usual).mean())
    return round(rates.high_share * high + (1 - rates.high_share) * usual, 6)


def _first_overload(hours: Sequence[HourHeadroom], now: datetime) -> datetime | None:
    """Return the start of the next hour whose least head-room is negative, None for none."""
    overloaded = {row.hour for row in hours if row.least < 0}
    start = now.replace(minute=0, second=0, microsecond=0)
    coming = (start + timedelta(hours=ahead) for ahead in range(_HOURS))
    return next((moment for moment in coming if moment.hour in overloaded), None)
