"""The lag of a stream: its unread records, as the time in which so many arrive."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np

from controlplane.models import Cluster
from controlplane.telemetry import series
from controlplane.telemetry.grid import Period, grid_of

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
    return next(iter(_points(series.newest(cluster, "stream"), stream)), None)


def lags(cluster: Cluster, stream: int, start: datetime, seconds: int) -> Sequence[LagPoint]:
    """Return the lags of a stream since `start`, oldest first, in periods of a length."""
    rows = series.stored([cluster.pk], ["stream"], seconds).filter(t__gte=start)
    return _points([period for _, period in series.periods_of(rows)], stream)


def _points(periods: Sequence[Period], stream: int) -> list[LagPoint]:
    names = ("stream_arrived", "stream_unread")
    grid = grid_of(names, periods, subjects=np.array([stream]))
    points = []
    columns = grid.starts, grid.measured_s, *(grid[name][:, 0].tolist() for name in names)
    for start, measured_s, arrived, unread in zip(*columns, strict=True):
        if np.isnan(arrived):
            continue
        waiting = max(0.0, unread)
        rate = arrived / measured_s if measured_s > 0 else 0.0
        lag_s = waiting / rate if rate >= _LEAST_RATE else None if waiting else 0.0
        points.append(LagPoint(start, waiting, None if lag_s is None else round(lag_s, 3)))
    return points
