"""The lag of a stream: its unread records, as the time in which so many arrive."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np

from controlplane.models import Cluster
from controlplane.telemetry import series
from controlplane.telemetry.grid import Grid, Period, grid_of

# Without so many records/s a lag in seconds means nothing.
_LEAST_RATE: Final = 1e-3
_NAMES: Final = ("stream_arrived", "stream_unread")


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
    return newest_lags(cluster, [stream]).get(stream)


def newest_lags(cluster: Cluster, streams: Sequence[int]) -> dict[int, LagPoint]:
    """Return the newest lags of streams by stream, without those that had no record yet."""
    grid = _grid(series.newest(cluster, "stream"), streams)
    return {stream: point for index, stream in enumerate(streams)
            for point in _points(grid, index)[:1]}  # fmt: skip


def lags(cluster: Cluster, stream: int, start: datetime, seconds: int) -> Sequence[LagPoint]:
    """Return the lags of a stream since `start`, oldest first, in periods of a length."""
    rows = series.stored([cluster.pk], ["stream"], seconds).filter(t__gte=start)
    return _points(_grid([period for _, period in series.periods_of(rows)], [stream]), 0)


def _grid(periods: Sequence[Period], streams: Sequence[int]) -> Grid:
    return grid_of(_NAMES, periods, subjects=np.array(streams, np.int64))


def _points(grid: Grid, index: int) -> list[LagPoint]:
    points = []
    columns = grid.starts, grid.measured_s, *(grid[name][:, index].tolist() for name in _NAMES)
    for start, measured_s, arrived, unread in zip(*columns, strict=True):
        if np.isnan(arrived):
            continue
        waiting = max(0.0, unread)
        rate = arrived / measured_s if measured_s > 0 else 0.0
        lag_s = waiting / rate if rate >= _LEAST_RATE else None if waiting else 0.0
        points.append(LagPoint(start, waiting, None if lag_s is None else round(lag_s, 3)))
    return points
