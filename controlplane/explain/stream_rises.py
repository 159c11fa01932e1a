"""Rises of the rates of streams: of each stream, and of all streams together."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from algorithms.vocabulary import Flags, Floats, Ints
from controlplane.explain.observation import RECENT, ClusterObservation
from controlplane.explain.series_shifts import filled_forward, largest_shifts
from controlplane.telemetry.arrivals import PERIOD_S, RateHistory

# A stream rises with all others if it rises by this part of their relative rise.
_ALIKE: Final = 0.25


class StreamRise(NamedTuple):
    """The change of the rate of a stream as a node receives it, in records/s.

    `source_before`, `source_after`: of the stream itself; `time`: when it changed, None if it did
    not change by more than chance.
    """

    id: int
    name: str
    before: float
    after: float
    source_before: float
    source_after: float
    time: datetime | None


@dataclass(frozen=True, eq=False)
class StreamRises:
    """The changes of the rates of s streams, as `StreamRise`, the largest rise first.

    By columns: a node may read ten thousand streams. `streams` int64[s]; the rates float64[s];
    `places` int64[s]: the place in `starts` of the time of the change, -1 without a change.
    """

    streams: Ints
    before: Floats
    after: Floats
    source_before: Floats
    source_after: Floats
    places: Ints
    starts: Sequence[datetime] = ()
    names: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def none(cls) -> "StreamRises":
        """Return the changes of no stream."""
        none, places = np.zeros(0), np.zeros(0, np.int64)
        return cls(places, none, none, none, none, places)

    def __len__(self) -> int:
        return len(self.streams)

    @property
    def rise(self) -> Floats:
        """Return how many more records/s the node receives of each stream, float64[s]."""
        return self.after - self.before

    @property
    def are_changed(self) -> Flags:
        """Return which rates changed by more than chance, bool[s]."""
        return self.places >= 0

    @cached_property
    def former_rates(self) -> dict[int, float]:
        """Return the rate of each stream itself before its change, by id."""
        return dict(zip(self.streams.tolist(), self.source_before.tolist(), strict=True))

    def rates_at(self, moment: datetime) -> dict[int, float]:
        """Return the rate of each stream itself at a moment, before or after its change, by id."""
        last = bisect_right(self.starts, moment) - 1
        rates = np.where(self.places <= last, self.source_after, self.source_before)
        return dict(zip(self.streams.tolist(), rates.tolist(), strict=True))

    def row(self, place: int) -> StreamRise:
        """Return the change of one stream by its place."""
        stream, start = int(self.streams[place]), int(self.places[place])
        return StreamRise(
            stream, self.names.get(stream, str(stream)), float(self.before[place]),
            float(self.after[place]), float(self.source_before[place]),
            float(self.source_after[place]), self.starts[start] if start >= 0 else None,
        )  # fmt: skip

    def largest(self, sizes: Floats, count: int, among: Flags | None = None) -> list[StreamRise]:
        """Return the streams with the largest sizes, float64[s], largest first; `among`: of these.

        Equal ones keep their order.
        """
        chosen = np.arange(len(self)) if among is None else np.flatnonzero(among)
        order = np.argsort(-sizes[chosen], kind="stable")[:count]
        return [self.row(place) for place in chosen[order].tolist()]


def stream_rises(
    observed: ClusterObservation, weights: Mapping[int, float], names: Mapping[int, str]
) -> StreamRises:
    """Return the rates of streams before and after their largest shift, the largest rise first."""
    history = observed.rates(sorted(weights))
    if not history.rates.shape[1]:
        return StreamRises.none()
    shifts, newest = largest_shifts(history.rates), _newest(history)
    weight = np.array([weights[stream] for stream in history.streams.tolist()])
    before = np.where(shifts.are_sure, shifts.before, newest)
    places = np.where(shifts.are_sure, np.minimum(shifts.places, len(history.starts) - 1), -1)
    order = np.argsort(weight * before - weight * newest, kind="stable")
    return StreamRises(
        history.streams[order], (weight * before)[order], (weight * newest)[order],
        before[order], newest[order], places[order], history.starts, names,
    )  # fmt: skip


@dataclass(frozen=True)
class CommonRise:
    """The rise of the rates of all streams together, as a node receives them, in records/s.

    `time`: when their sum rose; `count`: the streams that have more records since then; `largest`,
    the id of the one that has most more. `source_before`, `source_after`: sums of their own rates.
    """

    time: datetime
    count: int
    largest: int
    before: float
    after: float
    source_before: float
    source_after: float


def common_rise(observed: ClusterObservation, weights: Mapping[int, float]) -> CommonRise | None:
    """Return the rise of the sum of streams that is more than chance, None without one.

    The rises of many streams may each be small beside their noise where that of the sum is not.
    """
    history = observed.rates(sorted(weights))
    if not history.rates.shape[1] or not history.rates.shape[0]:
        return None
    rates, streams = filled_forward(history.rates), history.streams.tolist()
    weight = np.array([weights[stream] for stream in streams])
    shifts = largest_shifts((weight @ rates)[None, :])
    place = int(shifts.places[0])
    if not shifts.is_sure(0) or shifts.after[0] <= shifts.before[0]:
        return None
    before, after = rates[:, :place].mean(axis=1), rates[:, place:].mean(axis=1)
    # Relative to the sum: what rises less is noise.
    least = _ALIKE * float(weight @ after) / max(float(weight @ before), 1.0)
    risen = after - before > np.maximum(0.0, (least - _ALIKE) * before)
    if not risen.any():
        return None
    part = np.where(risen, weight, 0.0)
    largest = streams[int(np.argmax(part * (after - before)))]
    return CommonRise(
        history.starts[min(place, len(history.starts) - 1)], int(risen.sum()), largest,
        float(part @ before), float(part @ after),
        float(before[risen].sum()), float(after[risen].sum()),
    )  # fmt: skip


def _newest(history: RateHistory) -> Floats:
    """Return the mean rate of each stream over the last `RECENT`, 0 if it is not known."""
    last = history.rates[
        :, -max(1, round(RECENT.total_seconds() / max(history.seconds, PERIOD_S))) :
    ]
    known = ~np.isnan(last)
    means: Floats = np.where(known, last, 0.0).sum(axis=1) / np.maximum(1, known.sum(axis=1))
    return means
