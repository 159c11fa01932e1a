"""The rates of streams over time, from the stored periods of their arrivals.

Complete periods do not change any more, so each process keeps them: a page reads hundreds of
periods, each with all streams of its cluster; six of them are new in a minute.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, Final

import numpy as np
from django.db.models import QuerySet

from algorithms.vocabulary import Floats, Ints
from controlplane.models import Cluster, SeriesPeriod
from controlplane.telemetry import series
from controlplane.telemetry.arrivals.periods import PERIOD_S, counted_until
from controlplane.telemetry.grid import Period, grid_of
from controlplane.telemetry.series import fitting_seconds, periods_of, start_of
from controlplane.wire.figures import KEPT

# Numbers that are kept in all: 64 MB.
MOST_VALUES: Final = 8_000_000
ARRIVED: Final = "stream_arrived"

Key = tuple[int, datetime, int, datetime, float]


class PeriodCache:
    """The arrivals of periods by cluster, length and start; the oldest uses go first.

    A period is read again when more of it is measured.
    """

    def __init__(self, most: int = MOST_VALUES) -> None:
        self._most = most
        self._kept: OrderedDict[Key, Period] = OrderedDict()
        self._values = 0
        self._lock = Lock()

    def read(self, cluster: Cluster, rows: QuerySet[SeriesPeriod]) -> list[Period]:
        """Return the periods of rows of a cluster, with their arrivals, in order of time."""
        # A new database reuses ids.
        own = cluster.pk, cluster.created_at
        keys: dict[int, Key] = {
            pk: (*own, seconds, t, measured_s)
            for pk, seconds, t, measured_s in rows.order_by("t").values_list(
                "pk", "seconds", "t", "measured_s"
            )
        }
        kept = self._known(list(keys.values()))
        missing = [pk for pk, key in keys.items() if key not in kept]
        if missing:
            kept |= self._load(own, rows.filter(pk__in=missing))
        # A row that was deleted meanwhile is left out.
        return [kept[key] for key in keys.values() if key in kept]

    def clear(self) -> None:
        """Forget all periods, as after rows of another database with the same ids."""
        with self._lock:
            self._kept.clear()
            self._values = 0

    def _known(self, keys: Sequence[Key]) -> dict[Key, Period]:
        with self._lock:
            kept = {key: self._kept[key] for key in keys if key in self._kept}
            for key in kept:
                self._kept.move_to_end(key)
        return kept

    def _load(self, own: tuple[int, datetime], rows: QuerySet[SeriesPeriod]) -> dict[Key, Period]:
        with self._lock:
            newest = next(reversed(self._kept.values()), None)
        subjects = None if newest is None else newest.subjects
        loaded: dict[Key, Period] = {}
        for _, period in periods_of(rows):
            # Most periods have the same streams, which are kept once.
            if subjects is None or period.subjects.tobytes() != subjects.tobytes():
                subjects = period.subjects.copy()
            values = {ARRIVED: period.values[ARRIVED].copy()}
            key = (*own, period.seconds, period.t, period.measured_s)
            loaded[key] = replace(period, subjects=subjects, values=values)
        with self._lock:
            for key, period in loaded.items():
                if key not in self._kept:
                    self._kept[key] = period
                    self._values += len(period.subjects)
            while self._values > self._most:
                self._values -= len(self._kept.popitem(last=False)[1].subjects)
        return loaded


_CACHE: Final = PeriodCache()
# The most periods of a time range: hours of 60 days.
MOST_PERIODS: Final = 1_500
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, eq=False)
class RateHistory:
    """Rates of s streams in t periods, records/s.

    `streams` int64[s], ascending; `rates` float64[s, t], oldest first, NaN before a stream's first
    record and in periods that are not stored; `starts`: of the periods; `seconds`: their length;
    `measured_s` float64[t]: how much of each is measured.
    """

    seconds: int
    streams: Ints
    rates: Floats
    starts: Sequence[datetime]
    measured_s: Floats

    @property
    def means(self) -> dict[int, float]:
        """Return the mean rate of each stream over the measured time, without unknown ones."""
        measured_s = np.where(np.isnan(self.rates), 0.0, self.measured_s).sum(axis=1)
        arrived = np.nansum(self.rates * self.measured_s, axis=1)
        known = zip(self.streams.tolist(), arrived.tolist(), measured_s.tolist(), strict=True)
        return {stream: count / seconds for stream, count, seconds in known if seconds}

    def of(self, stream: int) -> Floats:
        """Return the rates of one stream, float64[t]."""
        place = int(np.searchsorted(self.streams, stream))
        rates: Floats = self.rates[place]
        return rates


def history(
    cluster: Cluster, periods: int, seconds: int = PERIOD_S, streams: Sequence[int] | None = None
) -> RateHistory:
    """Return the rates of the newest complete periods of a length.

    `streams`: ids, by default of all streams of the cluster.
    """
    ids = streams if streams is not None else cluster.streams.values_list("id", flat=True)
    known = np.array(sorted(ids), np.int64)
    newest = counted_until(cluster)
    if newest is None:
        return _history(seconds, known, [], _EPOCH)
    end = start_of(newest, seconds)
    begin = end - timedelta(seconds=seconds * periods)
    result = _history(seconds, known, _complete(cluster, begin, end, seconds), end)
    return replace(result, rates=_without_silence(result.rates))


def rates_between(
    cluster: Cluster, start: datetime, stop: datetime, streams: Sequence[int]
) -> RateHistory:
    """Return the stored rates of streams in a time range, in the shortest periods that cover it.

    Complete periods only. Those that are not stored are NaN; none are returned before the first
    stored one.
    """
    seconds, known = fitting_period(start, stop), np.array(sorted(streams), np.int64)
    periods: list[Period] = []
    # Of the newest records there are no longer periods yet.
    for seconds in sorted((s for s in KEPT["stream"] if s <= seconds), reverse=True):
        periods = _complete(cluster, start_of(start, seconds), stop, seconds)
        if periods:
            break
    end = periods[-1].t + timedelta(seconds=seconds) if periods else _EPOCH
    return _history(seconds, known, periods, end)


def fitting_period(start: datetime, stop: datetime) -> int:
    """Return the length of the shortest periods that are kept since `start`, at most 1,500."""
    return fitting_seconds(start, stop, "stream", MOST_PERIODS)


def _complete(cluster: Cluster, start: datetime, stop: datetime, seconds: int) -> list[Period]:
    rows = series.stored([cluster.pk], ["stream"], seconds).filter(t__gte=start, t__lt=stop)
    # Longer periods are rolled up when they are complete.
    return _CACHE.read(cluster, rows.filter(measured_s__gte=min(seconds, PERIOD_S)))


def _history(seconds: int, known: Ints, periods: Sequence[Period], end: datetime) -> RateHistory:
    """Return the rates of the known streams from the first stored period to `end`."""
    if not periods:
        return RateHistory(seconds, known, np.zeros((len(known), 0)), [], np.zeros(0))
    first = periods[0].t
    count = round((end - first).total_seconds() / seconds)
    arrived = grid_of([ARRIVED], periods, subjects=known)
    rates, measured_s = np.full((count, len(known)), np.nan), np.zeros(count)
    places = np.round((arrived.times - first.timestamp()) / seconds).astype(np.int64)
    # The first long period of a cluster is measured in part.
    measured_s[places] = arrived.measured_s
    rates[places] = np.nan_to_num(arrived[ARRIVED]) / arrived.measured_s[:, None]
    starts = [first + timedelta(seconds=seconds * place) for place in range(count)]
    return RateHistory(seconds, known, np.ascontiguousarray(rates.T), starts, measured_s)


def _without_silence(rates: Floats) -> Floats:
    """Return the rates with NaN before the first record of a stream that has one."""
    started: Any = np.logical_or.accumulate(np.nan_to_num(rates) > 0, axis=1)
    silent = started.any(axis=1)[:, None] & ~started
    rates[silent] = np.nan
    return rates
