"""Samples of a cluster in buckets of equal length: points of lines, and cells of the heat map."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final

import numpy as np

from controlplane.telemetry.grid import Grid
from controlplane.telemetry.measures import PRESENT
from controlplane.telemetry.series import fitting_seconds
from controlplane.wire.figures import Unit, figure_of, with_parts
from dashboard.time_range import TimeRange

# The series of the lines, and of the loads of nodes.
LINES: Final = (
    "version", "arrived", "delivered", "rf", "rf_limit", "imbalance", "p50", "p95", "p99",
    "emitted_ms",
)  # fmt: skip
LOADS: Final = ("loads", "arrived", "in")
# The lines with a mean of the last minute, as tiles show it, and the series that it needs.
MINUTES: Final = ("arrived", "delivered", "rf", "imbalance", "p50", "p95")
# Points of a line: more are indistinguishable in half of a page.
POINTS: Final = 400
# Columns of the heat map, at most.
CELLS: Final = 60
# Lengths of buckets in seconds.
_LENGTHS: Final = (
    1, 2, 3, 5, 10, 20, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200,
)  # fmt: skip
# Four digits are more than a chart can show.
_DIGITS: Final = 4


@dataclass(frozen=True)
class NodeSeries:
    """A node in a chart; capacity in deliveries/s."""

    index: int
    name: str
    capacity: float


@dataclass(frozen=True)
class Heat:
    """The mean load/capacity of nodes (rows) in buckets of `step` ms from `start` (ms) on.

    None without samples in a bucket.
    """

    start: int
    step: int
    nodes: Sequence[NodeSeries]
    shares: Sequence[Sequence[float | None]]


def bucket_seconds(time_range: TimeRange, most: int) -> int:
    """Return the length of a range's buckets in seconds: at most so many, none below the stored."""
    stored = fitting_seconds(time_range.start, time_range.end)
    least = max(stored, time_range.length.total_seconds() / most)
    return next((length for length in _LENGTHS if length >= least), _LENGTHS[-1])


def has_minutes(step: int) -> bool:
    """Return True if lines of buckets of `step` seconds have means of a minute beside them."""
    return step < PRESENT.total_seconds()


def line_columns(series: Grid, step: int) -> dict[str, list[Any]]:
    """Return the series merged in buckets of `step` seconds, as columns; `t` in ms.

    Of micro-batches, a bucket of one second keeps the time of its sample. Buckets of a minute or
    more have no means of a minute.
    """
    merged = series if step == 1 else series.every(step)
    columns: dict[str, list[Any]] = {"t": [round(1000 * t) for t in merged.times.tolist()]}
    for name in LINES:
        columns[name] = [_rounded(name, value) for value in merged[name].tolist()]
    minutes = merged.trailing(PRESENT.total_seconds())
    for name in MINUTES if has_minutes(step) else ():
        columns[f"minute_{name}"] = [_rounded(name, value) for value in minutes[name].tolist()]
    return columns


def last_minute(series: Grid) -> list[dict[str, Any]]:
    """Return the newest minute of samples as they were sent, from which its mean continues."""
    recent = series.where(series.times > series.times.max(initial=0.0) - PRESENT.total_seconds())
    columns = {"t": np.round(1000 * recent.times), "span_s": recent.measured_s}
    columns |= {name: recent[name] for name in with_parts(MINUTES)}
    known = {name: np.where(np.isnan(v), None, v) for name, v in columns.items()}  # type: ignore[call-overload]
    return [
        {
            name: values[place].tolist() if values.ndim > 1 else values[place]
            for name, values in known.items()
        }
        for place in range(len(recent))
    ]


def _rounded(name: str, value: float) -> float | int | None:
    """Return four significant digits of a value, None if it is missing, and all of a time."""
    if isnan(value):
        return None
    is_whole = figure_of(name).unit in (Unit.TIME, Unit.COUNT)
    return round(value) if is_whole else float(f"{value:.{_DIGITS}g}")


def heat_of(series: Grid, time_range: TimeRange, nodes: Sequence[NodeSeries]) -> Heat:
    """Return the heat map of the loads of nodes."""
    step = bucket_seconds(time_range, CELLS)
    start, end = (ms / 1000 for ms in time_range.milliseconds)
    first = int(start // step)
    count = max(1, int(-(-end // step)) - first)
    cells = series.merged(np.clip(series.slots(step) - first, 0, count - 1))
    shares = np.full((len(nodes), count), np.nan)
    columns = np.clip(cells.slots(step) - first, 0, count - 1)
    loads = cells.loads
    for place, node in enumerate(nodes):
        if node.index < loads.shape[1]:
            shares[place, columns] = np.round(loads[:, node.index] / node.capacity, 3)
    known = [[None if isnan(value) else value for value in row] for row in shares.tolist()]
    return Heat(1000 * first * step, 1000 * step, nodes, known)
