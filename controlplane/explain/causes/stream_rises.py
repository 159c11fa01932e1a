"""Rises of the rates of a cluster's streams: of each stream, and of most of them together."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from algorithms.vocabulary import Flags, Floats, Ints
from controlplane.explain.change import ChangeKind, NearbyChange
from controlplane.telemetry.arrivals import PERIOD_S, RateHistory
from controlplane.watch.observation import RECENT
from controlplane.watch.series_shifts import LEAST, filled_forward, largest_shifts

# A change of a rate by less than this part is the usual variation.
LEAST_RISE: Final = 0.2
# Streams whose rates changed, in an explanation.
_RISES: Final = 3
# A stream rises with the others if it rises by this part of their relative rise.
_ALIKE: Final = 0.25
# Streams rise together if at least so many do, and this part of those with records.
_LEAST_STREAMS: Final = 3
_MOST_STREAMS: Final = 0.5
# A stream with more than this part of the variation of the sum varies alone.
_MOST_VARIATION: Final = 0.5
# What is this much larger than the common rise explains is a rise of its own.
BEYOND: Final = 1.5


class StreamRise(NamedTuple):
    """The change of the rate of a stream, in records/s.

    `time`: when it changed, None if it did not change by more than chance.
    """

    id: int
    name: str
    before: float
    after: float
    time: datetime | None


@dataclass(frozen=True, eq=False)
class CommonRise:
    """The rise of most streams of a cluster at once.

    `factor`: by which the median stream rose; `risen` bool[s]: the streams that rose with it;
    `before`, `after` float64[s]: the mean rates of all streams on both sides of `time`.
    """

    time: datetime
    factor: float
    risen: Flags
    before: Floats
    after: Floats


@dataclass(frozen=True, eq=False)
class StreamRises:
    """The changes of the rates of s streams, by columns: a cluster may have ten thousand.

    `streams` int64[s]; `before`, `after` float64[s]; `places` int64[s]: the place in `starts` of
    the time of the change, -1 without one. `common`: None without a common rise.
    """

    streams: Ints
    before: Floats
    after: Floats
    places: Ints
    starts: Sequence[datetime]
    names: Mapping[int, str]
    common: CommonRise | None

    @classmethod
    def of(cls, history: RateHistory, names: Mapping[int, str]) -> "StreamRises":
        """Return the changes in a history of rates: the largest shift of each stream."""
        shifts, newest = largest_shifts(history.rates), _newest(history)
        last = max(0, len(history.starts) - 1)
        return cls(
            history.streams, np.where(shifts.are_sure, shifts.before, newest), newest,
            np.where(shifts.are_sure, np.minimum(shifts.places, last), -1),
            history.starts, names, _common_rise(history),
        )  # fmt: skip

    @property
    def are_changed(self) -> Flags:
        """Return which rates changed by more than chance, bool[s]."""
        return self.places >= 0

    @cached_property
    def are_single(self) -> Flags:
        """Return which streams rose by more than chance, and than the common rise explains."""
        rose = self.are_changed & (self.after > self.before)
        if self.common is None:
            return rose
        beyond = self.after > BEYOND * self.common.factor * np.maximum(self.before, 1.0)
        return rose & (beyond | ~self.common.risen)

    @cached_property
    def former_rates(self) -> dict[int, float]:
        """Return the rate of each stream before its change, by id."""
        return dict(zip(self.streams.tolist(), self.before.tolist(), strict=True))

    def weights(self, weights: Mapping[int, float]) -> Floats:
        """Return the parts of the streams that a node receives, float64[s]."""
        return np.array([weights.get(stream, 0.0) for stream in self.streams.tolist()])

    def rates_at(self, moment: datetime) -> dict[int, float]:
        """Return the rate of each stream at a moment, before or after its change, by id."""
        last = bisect_right(self.starts, moment) - 1
        rates = np.where(self.places <= last, self.after, self.before)
        return dict(zip(self.streams.tolist(), rates.tolist(), strict=True))

    def row(self, place: int) -> StreamRise:
        """Return the change of one stream by its place."""
        stream, start = int(self.streams[place]), int(self.places[place])
        return StreamRise(
            stream, self.names.get(stream, str(stream)), float(self.before[place]),
            float(self.after[place]), self.starts[start] if start >= 0 else None,
        )  # fmt: skip

    def largest(self, sizes: Floats, count: int, among: Flags) -> list[int]:
        """Return the places of the streams among these with the largest sizes, float64[s]."""
        chosen = np.flatnonzero(among)
        return [int(place) for place in chosen[np.argsort(-sizes[chosen], kind="stable")[:count]]]


def _common_rise(history: RateHistory) -> CommonRise | None:
    """Return the rise of most streams together, None without one.

    The rises of many streams may each be small beside their noise where that of the sum is not. A
    stream that had a rise of its own before, such as a hot key, would hide that of the others.
    """
    rates = filled_forward(history.rates)
    if rates.shape[0] < _LEAST_STREAMS or rates.shape[1] < 2 * LEAST:
        return None
    varied = rates.std(axis=1) <= _MOST_VARIATION * rates.sum(axis=0).std()
    shifts = largest_shifts(rates[varied].sum(axis=0)[None, :])
    place = int(shifts.places[0])
    if not shifts.is_sure(0) or shifts.after[0] <= shifts.before[0]:
        return None
    before, after = rates[:, :place].mean(axis=1), rates[:, place:].mean(axis=1)
    active = (before > 0) & (after > 0)
    if not active.any():
        return None
    factor = float(np.median(after[active] / before[active]))
    risen = active & (after - before > _ALIKE * (factor - 1) * before)
    least = max(_LEAST_STREAMS, _MOST_STREAMS * int(active.sum()))
    if factor - 1 <= _ALIKE or risen.sum() < least:
        return None
    return CommonRise(
        history.starts[min(place, len(history.starts) - 1)], factor, risen, before, after
    )


def _newest(history: RateHistory) -> Floats:
    """Return the mean rate of each stream over the last `RECENT`, 0 if it is not known."""
    last = history.rates[
        :, -max(1, round(RECENT.total_seconds() / max(history.seconds, PERIOD_S))) :
    ]
    known = ~np.isnan(last)
    means: Floats = np.where(known, last, 0.0).sum(axis=1) / np.maximum(1, known.sum(axis=1))
    return means


def rate_changes(rises: StreamRises, weights: Floats) -> list[NearbyChange]:
    """Return the largest changes of rates of streams by their records on a node (`weights`)."""
    sizes = weights * np.abs(rises.after - rises.before)
    least = LEAST_RISE * weights * np.maximum(rises.before, rises.after)
    rows = map(rises.row, rises.largest(sizes, _RISES, rises.are_changed & (sizes > least)))
    return [
        NearbyChange(
            ChangeKind.RATE, rise.time, rise.name, rise.id, before=rise.before, after=rise.after
        )
        for rise in rows if rise.time is not None
    ]  # fmt: skip
