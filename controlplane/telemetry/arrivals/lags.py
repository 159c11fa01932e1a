"""The lag of a stream: its unread records, as the time in which so many arrive."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from controlplane.models import Cluster, StreamArrivals

_TEN_SECONDS: Final = int(StreamArrivals.Period.TEN_SECONDS)
# Without so many records/s a lag in seconds means nothing.
_LEAST_RATE: Final = 1e-3


@dataclass(frozen=True)
class LagPoint:
    """The lag of a stream in a period that starts at `time`.

    `unread`: records in the log that no split node has read, in longer periods the most of them;
    `seconds`: the time in which so many arrive, None if records wait and none arrive.
    """

    time: datetime
    unread: float
    seconds: float | None


def lag_of(cluster: Cluster, stream: int) -> LagPoint | None:
    """Return the newest lag of a stream, None before its first record."""
    rows = StreamArrivals.objects.filter(cluster=cluster, seconds=_TEN_SECONDS)
    row = rows.order_by("-t").first()
    return None if row is None else _point(row, stream)


def lags(
    cluster: Cluster, stream: int, start: datetime, seconds: int = _TEN_SECONDS
) -> Sequence[LagPoint]:
    """Return the lags of a stream since `start`, oldest first, in periods of a length."""
    rows = StreamArrivals.objects.filter(cluster=cluster, seconds=seconds, t__gte=start)
    points = (_point(row, stream) for row in rows.order_by("t"))
    return [point for point in points if point is not None]


def _point(row: StreamArrivals, stream: int) -> LagPoint | None:
    streams, arrived, unread = row.columns()
    places = (streams == stream).nonzero()[0]
    if not len(places):
        return None
    place = int(places[0])
    waiting = max(0.0, float(unread[place]))
    counted_s = (row.counted_until - row.t).total_seconds()
    rate = float(arrived[place]) / counted_s if counted_s > 0 else 0.0
    lag_s = waiting / rate if rate >= _LEAST_RATE else None if waiting else 0.0
    return LagPoint(row.t, waiting, None if lag_s is None else round(lag_s, 3))
