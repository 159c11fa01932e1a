"""Samples of a cluster in buckets of equal length: points of lines, and cells of the heat map."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.telemetry.columns import Row
from controlplane.telemetry.time_series import fitting_resolution
from controlplane.wire.figures import RollUp, figure_of, names_of
from dashboard.figures.parts import ms
from dashboard.time_range import TimeRange

# The figures of the lines, in the order of their columns.
LINES: Final = ("version", "in", "delivered", "rf", "imbalance", "p50", "p95", "p99", "emitted_ms")
LOADS: Final = figure_of("loads").name
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
    """A node in a chart; capacity in records/s."""

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
    stored = fitting_resolution(time_range.start, time_range.end)
    least = max(stored, time_range.length.total_seconds() / most)
    return next((length for length in _LENGTHS if length >= least), _LENGTHS[-1])


def line_columns(rows: Sequence[Row], step: int) -> dict[str, list[Any]]:
    """Return the rows merged in buckets of `step` seconds, as columns; `t` in ms.

    Of raw samples, a bucket of one second keeps the time of its sample.
    """
    groups: dict[int, list[Row]] = {}
    for row in rows:
        t = ms(row[0])
        groups.setdefault(t if step == 1 else t // (1000 * step) * 1000 * step, []).append(row)
    columns: dict[str, list[Any]] = {"t": list(groups)}
    for place, name in enumerate(LINES, start=1):
        columns[name] = [
            rounded(_merged(name, [row[place] for row in group])) for group in groups.values()
        ]
    return columns


def heat_of(rows: Sequence[Row], time_range: TimeRange, nodes: Sequence[NodeSeries]) -> Heat:
    """Return the heat map of rows whose last column is the load by node."""
    step = 1000 * bucket_seconds(time_range, CELLS)
    start, end = time_range.milliseconds
    first = start // step
    count = max(1, -(-end // step) - first)
    sums, counts = np.zeros((len(nodes), count)), np.zeros((len(nodes), count))
    indices = [node.index for node in nodes]
    for row in rows:
        loads = row[-1] or []
        column = min(count - 1, max(0, ms(row[0]) // step - first))
        known = [i for i, index in enumerate(indices) if index < len(loads)]
        values = [loads[indices[i]] for i in known]
        present = [i for i, value in zip(known, values, strict=True) if value is not None]
        sums[present, column] += [value for value in values if value is not None]
        counts[present, column] += 1
    shares = _shares(sums, counts, nodes)
    return Heat(first * step, step, nodes, shares)


def _shares(sums: Floats, counts: Floats, nodes: Sequence[NodeSeries]) -> list[list[float | None]]:
    capacities = np.array([node.capacity for node in nodes]).reshape(-1, 1)
    with np.errstate(invalid="ignore"):
        means = np.round(sums / counts / capacities, 3)
    return [[None if np.isnan(v) else float(v) for v in row] for row in means]


def _merged(name: str, values: Sequence[Any]) -> Any:
    known = [value for value in values if value is not None]
    if not known:
        return None
    if name in names_of(RollUp.LAST):
        return known[-1]
    return max(known) if name in names_of(RollUp.MAX) else sum(known) / len(known)


def rounded(value: Any) -> Any:
    """Return a float with four significant digits, others as they are."""
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
