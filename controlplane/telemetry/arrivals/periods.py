"""Arrivals of streams: records per stream in even periods of ten seconds.

`intervals` is the only measure of rates: a micro-batch counts from the reading of the batch before
it to its own reading, and what arrived is what its split nodes have read, and the change of what
they have still to read. So the rate of a stream does not depend on how far its split node is
behind, and working off the backlog of an outage is not a load. Periods have equal parts of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np

from algorithms.vocabulary import Floats, Ints
from controlplane.models import Cluster
from controlplane.telemetry import series
from controlplane.telemetry.grid import Period
from controlplane.telemetry.series import start_of
from controlplane.wire.figures import ARRIVALS_PERIOD_S

Row = Mapping[str, Any]
PERIOD_S: Final = ARRIVALS_PERIOD_S
# The longest time that one micro-batch counts for: earlier records have no known time.
LONGEST: Final = timedelta(hours=1)


def period_of(
    start: datetime,
    streams: Ints,
    arrived: Floats,
    unread: Floats,
    seconds: int = PERIOD_S,
    measured_s: float | None = None,
) -> Period:
    """Return the period of arrivals of streams, ascending ids; measured whole by default."""
    values = {"stream_arrived": arrived, "stream_unread": unread}
    length = float(seconds) if measured_s is None else measured_s
    return Period("stream", seconds, start, length, streams.astype(np.float64), values)


@dataclass
class _Counts:
    """Arrivals in one period, and unread records at its end, by stream."""

    arrived: dict[int, float]
    unread: dict[int, float]

    @classmethod
    def of(cls, period: Period | None) -> "_Counts":
        if period is None:
            return cls({}, {})
        streams = period.subjects.astype(np.int64).tolist()
        arrived, unread = (
            dict(zip(streams, period.values[name].tolist(), strict=True))
            for name in ("stream_arrived", "stream_unread")
        )
        return cls(arrived, unread)

    def period(self, start: datetime, measured_s: float) -> Period:
        streams = sorted(self.arrived.keys() | self.unread.keys())
        return period_of(
            start,
            np.array(streams, np.int64),
            np.array([self.arrived.get(stream, 0.0) for stream in streams], np.float64),
            np.array([self.unread.get(stream, 0.0) for stream in streams], np.float64),
            measured_s=measured_s,
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
    newest = _newest(cluster)
    until = None if newest is None else newest.end
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


def _newest(cluster: Cluster) -> Period | None:
    return next(iter(series.newest(cluster, "stream")), None)


def counted_until(cluster: Cluster) -> datetime | None:
    """Return up to where arrivals are counted, None before the first record."""
    newest = _newest(cluster)
    return None if newest is None else newest.end


def count(
    cluster: Cluster, rows: Sequence[Row], measured: Sequence[ArrivalInterval | None] | None = None
) -> None:
    """Count telemetry rows, in the transaction that stores the relay's position.

    `measured`: their intervals, if they were computed before.
    """
    newest = _newest(cluster)
    until = None if newest is None else newest.end
    periods: dict[datetime, _Counts] = {} if newest is None else {newest.t: _Counts.of(newest)}
    for interval in intervals(cluster, rows) if measured is None else measured:
        if interval is None:
            continue
        begin, end = max(interval.begin, interval.end - LONGEST), interval.end
        _spread(periods, interval.arrived, dict(interval.unread), begin, end)
        until = end
    if until is None:
        return
    changed = [
        counts.period(start, min((until - start).total_seconds(), PERIOD_S))
        for start, counts in periods.items()
    ]
    known = [period for period in changed if newest is not None and period.t == newest.t]
    series.record(cluster, known, update=True)
    # A period that an earlier clock had counted stays.
    series.record(cluster, (period for period in changed if period not in known))


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


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
