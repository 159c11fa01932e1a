"""Arrivals of streams: records per stream in periods of ten seconds, five minutes and an hour.

`intervals` is the only measure of rates: a micro-batch counts from the reading of the batch before
it to its own reading, and what arrived is what its split nodes have read, and the change of what
they have still to read. So the rate of a stream does not depend on how far its split node is
behind, and working off the backlog of an outage is not a load. Periods have equal parts of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import numpy as np
from django.db.models import Max

from algorithms.vocabulary import Flags, Floats, Ints
from controlplane.models import Cluster, StreamArrivals
from controlplane.telemetry.arrivals.period_cache import Columns, PeriodCache

PERIOD_S: Final = int(StreamArrivals.Period.TEN_SECONDS)
# How long the periods of each length are kept.
KEPT: Final[Mapping[int, timedelta]] = {
    PERIOD_S: timedelta(hours=2),
    int(StreamArrivals.Period.FIVE_MINUTES): timedelta(days=2),
    int(StreamArrivals.Period.HOUR): timedelta(days=90),
}
_CACHE: Final = PeriodCache()
Row = Mapping[str, Any]
# The most periods of a time range: hours of 60 days.
MOST_PERIODS: Final = 1_500
# The longest time that one micro-batch counts for: earlier records have no known time.
LONGEST: Final = timedelta(hours=1)
# A period is complete when a later micro-batch is counted, or after this while nothing comes.
PATIENCE: Final = timedelta(seconds=60)


@dataclass(frozen=True, eq=False)
class RateHistory:
    """Rates of s streams in t periods, records/s.

    `streams` int64[s], ascending; `rates` float64[s, t], oldest first, NaN before a stream's first
    record and in periods that are not stored; `starts`: of the periods; `seconds`: their length.
    """

    seconds: int
    streams: Ints
    rates: Floats
    starts: Sequence[datetime]

    def of(self, stream: int) -> Floats:
        """Return the rates of one stream, float64[t]."""
        place = int(np.searchsorted(self.streams, stream))
        rates: Floats = self.rates[place]
        return rates


@dataclass
class _Counts:
    """Arrivals in one period, and unread records at its end, by stream."""

    arrived: dict[int, float]
    unread: dict[int, float]

    @classmethod
    def of(cls, row: StreamArrivals | None) -> "_Counts":
        if row is None:
            return cls({}, {})
        streams, arrived, unread = (column.tolist() for column in row.columns())
        return cls(
            dict(zip(streams, arrived, strict=True)), dict(zip(streams, unread, strict=True))
        )

    def packed(self) -> bytes:
        streams = sorted(self.arrived.keys() | self.unread.keys())
        return StreamArrivals.packed(
            np.array(streams, np.int64),
            np.array([self.arrived.get(stream, 0.0) for stream in streams], np.float64),
            np.array([self.unread.get(stream, 0.0) for stream in streams], np.float64),
        )


@dataclass(frozen=True)
class ArrivalInterval:
    """The records that arrived between the readings of two micro-batches, by stream.

    `unread`: records in the log at the end, by stream. `is_measured`: False if records of batches
    in between are not known, as after a loss of Redis: then there is no rate.
    """

    begin: datetime
    end: datetime
    arrived: Mapping[int, float]
    unread: Mapping[int, float]
    is_measured: bool = True

    @property
    def seconds(self) -> float:
        """Return the length of the interval."""
        return (self.end - self.begin).total_seconds()

    @property
    def rate(self) -> float | None:
        """Return the records/s of all streams together, None if they are not known."""
        return sum(self.arrived.values()) / self.seconds if self.is_measured else None


def intervals(cluster: Cluster, rows: Sequence[Row]) -> list[ArrivalInterval | None]:
    """Return the interval of each telemetry row; None for a clock that was set back.

    The first row of a cluster only starts the clock: its records may have waited for hours.
    """
    newest = _periods(cluster, PERIOD_S).order_by("-t").first()
    until = newest.counted_until if newest else None
    unread: Mapping[int, float] = _Counts.of(newest).unread
    batch = Cluster.objects.filter(pk=cluster.pk).values_list("last_batch", flat=True).first()
    result: list[ArrivalInterval | None] = []
    for row in rows:
        end = _moment((row.get("read_ms") or row["emitted_ms"]) / 1000)
        begin = until or end - timedelta(milliseconds=cluster.trigger_ms)
        if end <= begin:
            result.append(None)
            continue
        now = {
            int(stream): float(records) for stream, (records, _) in row.get("behind", {}).items()
        }
        arrived = {} if until is None else _arrived(row, unread, now)
        known = until is not None and _follows(row, batch) and not row.get("skipped")
        result.append(ArrivalInterval(begin, end, arrived, now, known))
        until, unread, batch = end, now, row["batch"]
    return result


def _follows(row: Row, batch: int | None) -> bool:
    """Return whether a row is of the batch after this one, or the batch is not known."""
    return batch is None or row["batch"] == batch + 1


def count(
    cluster: Cluster, rows: Sequence[Row], measured: Sequence[ArrivalInterval | None] | None = None
) -> None:
    """Count telemetry rows, in the transaction that stores the relay's position.

    `measured`: their intervals, if they were computed before.
    """
    newest = _periods(cluster, PERIOD_S).order_by("-t").first()
    until = newest.counted_until if newest else None
    periods: dict[datetime, _Counts] = {newest.t: _Counts.of(newest)} if newest else {}
    first = newest.t if newest else None
    for interval in intervals(cluster, rows) if measured is None else measured:
        if interval is None:
            continue
        begin, end = max(interval.begin, interval.end - LONGEST), interval.end
        _spread(periods, interval.arrived, dict(interval.unread), begin, end)
        until = end
    if until is not None:
        _save(cluster, periods, until, first)


def forget_future(cluster: Cluster, now: datetime) -> int:
    """Delete the periods after `now`, which a clock that ran ahead has counted; return how many."""
    ahead = StreamArrivals.objects.filter(cluster=cluster, t__gt=now)
    return ahead.delete()[0]


def _arrived(row: Row, before: Mapping[int, float], now: Mapping[int, float]) -> dict[int, float]:
    """Return what arrived during a micro-batch by stream, without streams that had nothing."""
    read = {int(stream): float(records) for stream, records in row["streams"].items()}
    streams = read.keys() | before.keys() | now.keys()
    arrived = {s: read.get(s, 0.0) + now.get(s, 0.0) - before.get(s, 0.0) for s in streams}
    return {stream: records for stream, records in arrived.items() if records > 0}


def _spread(
    periods: dict[datetime, _Counts],
    arrived: Mapping[int, float],
    unread: dict[int, float],
    begin: datetime,
    end: datetime,
) -> None:
    """Add arrivals to the periods from `begin` to `end`, in proportion to their overlap."""
    start = start_of(begin, PERIOD_S)
    whole = (end - begin).total_seconds()
    while start < end:
        stop = start + timedelta(seconds=PERIOD_S)
        share = (min(stop, end) - max(start, begin)).total_seconds() / whole
        counts = periods.setdefault(start, _Counts({}, {}))
        for stream, records in arrived.items():
            counts.arrived[stream] = counts.arrived.get(stream, 0.0) + share * records
        counts.unread = unread
        start = stop


def _save(
    cluster: Cluster, periods: Mapping[datetime, _Counts], until: datetime, known: datetime | None
) -> None:
    rows = [
        StreamArrivals(
            cluster=cluster,
            seconds=PERIOD_S,
            t=start,
            counted_until=min(until, start + timedelta(seconds=PERIOD_S)),
            data=counts.packed(),
        )
        for start, counts in periods.items()
    ]
    for row in rows:
        if row.t == known:
            changed = {"counted_until": row.counted_until, "data": row.data}
            _periods(cluster, PERIOD_S).filter(t=known).update(**changed)
    # A period that an earlier clock had counted stays.
    StreamArrivals.objects.bulk_create(
        (row for row in rows if row.t != known), ignore_conflicts=True, batch_size=100
    )


def history(
    cluster: Cluster, periods: int, seconds: int = PERIOD_S, streams: Sequence[int] | None = None
) -> RateHistory:
    """Return the rates of the newest complete periods of a length.

    `streams`: ids, by default of all streams of the cluster.
    """
    ids = streams if streams is not None else cluster.streams.values_list("id", flat=True)
    known = np.array(sorted(ids), np.int64)
    newest = _periods(cluster, PERIOD_S).aggregate(until=Max("counted_until"))["until"]
    if newest is None:
        return RateHistory(seconds, known, np.zeros((len(known), 0)), [])
    end = start_of(newest, seconds)
    begin = end - timedelta(seconds=seconds * periods)
    stored = _periods(cluster, seconds).filter(t__gte=begin, t__lt=end).order_by("t")
    periods_ = list(_CACHE.read(cluster, seconds, stored))
    if not periods_:
        return RateHistory(seconds, known, np.zeros((len(known), 0)), [])
    result = _history(seconds, known, periods_, end)
    return replace(result, rates=_without_silence(result.rates))


def rates_between(
    cluster: Cluster, start: datetime, stop: datetime, streams: Sequence[int]
) -> RateHistory:
    """Return the stored rates of streams in a time range, in the shortest periods that cover it.

    Complete periods only. Those that are not stored are NaN; none are returned before the first
    stored one.
    """
    seconds, known = fitting_period(start, stop), np.array(sorted(streams), np.int64)
    rows: list[tuple[datetime, Columns]] = []
    # Of the newest records there are no longer periods yet.
    for seconds in sorted((s for s in KEPT if s <= seconds), reverse=True):
        begin = start_of(start, seconds)
        stored = _periods(cluster, seconds).filter(t__gte=begin, t__lt=stop).order_by("t")
        rows = list(_CACHE.read(cluster, seconds, stored))
        if rows:
            break
    if not rows:
        return RateHistory(seconds, known, np.zeros((len(known), 0)), [])
    return _history(seconds, known, rows, rows[-1][0] + timedelta(seconds=seconds))


def _history(
    seconds: int, known: Ints, periods: Sequence[tuple[datetime, Columns]], end: datetime
) -> RateHistory:
    """Return the rates of the known streams from the first stored period to `end`."""
    first = periods[0][0]
    count_ = round((end - first).total_seconds() / seconds)
    starts = [first + timedelta(seconds=seconds * place) for place in range(count_)]
    # By period, whose arrivals are read one after the other.
    rates = np.full((count_, len(known)), np.nan)
    places: _Places | None = None
    for start, (streams, arrived) in periods:
        # Most periods have the same array of streams.
        if places is None or places.streams is not streams:
            places = _Places.of(streams, known)
        place = round((start - first).total_seconds() / seconds)
        rates[place] = places.column(arrived)
    rates /= seconds
    return RateHistory(seconds, known, np.ascontiguousarray(rates.T), starts)


def fitting_period(start: datetime, stop: datetime) -> int:
    """Return the length of the shortest periods that are kept since `start`, at most 1,500."""
    now = datetime.now(UTC)
    for seconds, kept in KEPT.items():
        periods = (stop - start).total_seconds() / seconds
        if now - start <= kept and periods <= MOST_PERIODS:
            return seconds
    return max(KEPT)


class _Places(NamedTuple):
    """Where known streams are in the streams of a period; `present` bool[s]: those that are."""

    streams: Floats
    places: Ints
    present: Flags

    @classmethod
    def of(cls, streams: Floats, known: Ints) -> "_Places":
        """Return the places by the known streams, which may be one of ten thousand."""
        if not len(streams):
            return cls(streams, np.zeros(len(known), np.int64), np.zeros(len(known), np.bool_))
        places = np.minimum(np.searchsorted(streams, known), len(streams) - 1)
        return cls(streams, places, streams[places] == known)

    def column(self, arrived: Floats) -> Floats:
        """Return the arrivals of the known streams, float64[s]; 0 for others."""
        if not len(self.streams):
            return np.zeros(len(self.places))
        result: Floats = np.where(self.present, arrived[self.places], 0.0)
        return result


def _without_silence(rates: Floats) -> Floats:
    """Return the rates with NaN before the first record of a stream that has one."""
    started: Any = np.logical_or.accumulate(np.nan_to_num(rates) > 0, axis=1)
    silent = started.any(axis=1)[:, None] & ~started
    rates[silent] = np.nan
    return rates


def roll_up(now: datetime) -> int:
    """Write the longer periods that are complete; return how many."""
    lengths = [seconds for seconds in KEPT if seconds != PERIOD_S]
    return sum(_roll_up(cluster, s, now) for cluster in Cluster.objects.all() for s in lengths)


def _roll_up(cluster: Cluster, seconds: int, now: datetime) -> int:
    fine = _periods(cluster, PERIOD_S)
    newest = fine.aggregate(until=Max("counted_until"))["until"]
    if newest is None:
        return 0
    done = _periods(cluster, seconds).aggregate(t=Max("t"))["t"]
    begin = done + timedelta(seconds=seconds) if done else _moment(0)
    end = start_of(max(newest, now - PATIENCE), seconds)
    merged: dict[datetime, _Counts] = {}
    for row in fine.filter(t__gte=begin, t__lt=end).order_by("t"):
        counts = merged.setdefault(start_of(row.t, seconds), _Counts({}, {}))
        columns = (column.tolist() for column in row.columns())
        for stream, records, waiting in zip(*columns, strict=True):
            counts.arrived[stream] = counts.arrived.get(stream, 0.0) + records
            counts.unread[stream] = max(counts.unread.get(stream, 0.0), waiting)
    length = timedelta(seconds=seconds)
    StreamArrivals.objects.bulk_create(
        [
            StreamArrivals(cluster=cluster, seconds=seconds, t=start,
                           counted_until=start + length, data=counts.packed())
            for start, counts in merged.items()
        ],
        ignore_conflicts=True,
        batch_size=100,
    )  # fmt: skip
    return len(merged)


def prune(now: datetime) -> int:
    """Delete periods that are kept no longer; return how many."""
    return sum(
        StreamArrivals.objects.filter(seconds=seconds, t__lt=now - kept).delete()[0]
        for seconds, kept in KEPT.items()
    )


def _periods(cluster: Cluster, seconds: int) -> Any:
    return StreamArrivals.objects.filter(cluster=cluster, seconds=seconds)


def start_of(moment: datetime, seconds: int) -> datetime:
    """Return the start of the period of a length that contains a moment."""
    return _moment(int(moment.timestamp()) // seconds * seconds)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
