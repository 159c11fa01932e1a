"""Rates of arrival: records that are appended to the log per second, not records that are read.

While records are dropped or wait, the records that are read do not show the load. The process that
plans batches measures: a measurement decides through the offset only, so a replay needs none.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from controlplane.wire.routing.compiled_ladder import Floats

# Rates are means over this time, as producers append in bursts, until the load jumps.
MEAN_MS: Final = 10_000
# A jump is one of the mean over this time: a shorter burst waits as a backlog, for which the time
# after it has room. To drop by its rate would drop records that can be processed.
RECENT_MS: Final = 1_000
# A load jumps if it changes by this part of itself, or of a resource's time if it is less.
JUMP: Final = 0.25
# Two batches that are planned within this time make no sample.
MIN_INTERVAL_MS: Final = 250

# Returns the load of each resource for rates, float64[resources].
LoadsOf = Callable[[Floats], Floats]


class AppendedCounts(NamedTuple):
    """The records of each stream, int64[streams]: ever appended, and of these unread."""

    total: Floats
    unread: Floats


class Rates(NamedTuple):
    """Records/s of each stream, float64[streams], and the ms since the sample before."""

    per_s: Floats
    interval_ms: int


class _Sample(NamedTuple):
    now_ms: int
    total: Floats


@dataclass
class ArrivalMeter:
    """Samples of appended records of the same streams, the oldest first."""

    _samples: deque[_Sample] = field(default_factory=deque)
    _streams: tuple[int, ...] = ()
    _rates: Rates | None = None

    def rates(
        self, streams: tuple[int, ...], total: Floats, now_ms: int, loads_of: LoadsOf
    ) -> Rates | None:
        """Return the rates with a further sample, None if it is the first one.

        `total`: records ever appended to each of `streams`. A jump of any resource's load ends
        the mean: the rates are then those of the last `RECENT_MS`, or since the sample before if
        that is longer ago.
        """
        newest = self._samples[-1] if self._samples else None
        # Counts fall when Redis lost its contents.
        if newest is None or streams != self._streams or (total < newest.total).any():
            self._streams, self._rates = streams, None
            self._samples = deque([_Sample(now_ms, total)])
            return None
        interval_ms = now_ms - newest.now_ms
        if interval_ms < MIN_INTERVAL_MS:
            return self._rates
        recent = self._since(now_ms - RECENT_MS)
        before = None if self._rates is None else loads_of(self._rates.per_s)
        if before is not None and _jumps(loads_of(_per_s(recent, total, now_ms)), before):
            self._remove_before(recent.now_ms)
        self._remove_before(min(now_ms - MEAN_MS, recent.now_ms))
        self._rates = Rates(_per_s(self._samples[0], total, now_ms), interval_ms)
        self._samples.append(_Sample(now_ms, total))
        return self._rates

    def _since(self, now_ms: int) -> _Sample:
        """Return the newest sample that is as old as `now_ms`, else the oldest one."""
        old = (sample for sample in reversed(self._samples) if sample.now_ms <= now_ms)
        return next(old, self._samples[0])

    def _remove_before(self, now_ms: int) -> None:
        while self._samples[0].now_ms < now_ms:
            self._samples.popleft()


def _per_s(sample: _Sample, total: Floats, now_ms: int) -> Floats:
    return (total - sample.total) * (1000 / (now_ms - sample.now_ms))


def _jumps(recent: Floats, mean: Floats) -> bool:
    return bool((np.abs(recent - mean) > JUMP * np.maximum(mean, 1.0)).any())


@dataclass
class MixedTotals:
    """The totals of streams in a log that counts the records of all streams together.

    What is appended has the mix of what recent batches read.
    """

    _total: int = -1
    _by_stream: Floats = field(default_factory=lambda: np.zeros(0))
    _streams: tuple[int, ...] = ()

    def appended(
        self, streams: tuple[int, ...], total: int, unread: int, read: Mapping[int, int]
    ) -> AppendedCounts:
        """Return the appended and unread records of each stream.

        `total`, `unread`: of the log; `read`: records of each stream in recent batches.
        """
        every = sum(read.values())
        mix = np.array([read.get(stream, 0) / max(1, every) for stream in streams])
        if streams != self._streams:
            self._streams, self._by_stream, self._total = streams, np.zeros(len(streams)), total
        # The number of unread records is an estimate: a total may fall, but nothing is unappended.
        self._by_stream = self._by_stream + mix * max(0, total - self._total)
        self._total = max(total, self._total)
        return AppendedCounts(self._by_stream, mix * unread)
