"""Costs of queries from samples of telemetry: per record, and per merged partial result.

A micro-batch has a fixed cost, so the time of a batch over its records exceeds the cost of a
record, the more the fewer records it has. The slope of the least-squares line of the time over the
records does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Final, NamedTuple

import numpy as np

from algorithms.vocabulary import Flags, Floats
from controlplane.telemetry.grid import Grid

# The minimum number of samples, and how many of them give the first line, whose cost is quadratic.
LEAST_SAMPLES: Final = 20
_FIRST_SAMPLES: Final = 150
# The spread of the records (90th to 10th percentile) over their median.
LEAST_SPREAD: Final = 0.1
# Standard errors from which a slope is accepted. Samples that follow each other are not
# independent, so two standard errors of independent ones would accept too much.
SURE: Final = 4.0
# Samples further from the first line than so many standard deviations are outliers.
_OUTLIER: Final = 3.5
# The standard deviation of normal values over their median absolute deviation.
_NORMAL: Final = 1.4826


@dataclass(frozen=True)
class Line:
    """A line through samples: `y` for `x` = 0, its slope, and the standard error of the slope."""

    fixed: float
    slope: float
    error: float
    samples: int

    @property
    def is_sure(self) -> bool:
        """Return whether the slope is positive beyond its error."""
        return self.slope > SURE * self.error and self.slope > 0


def line_through(x: Floats, y: Floats) -> Line | None:
    """Return the least-squares line through samples without outliers, None if too few differ.

    The first line has the median slope of pairs (Theil and Sen), which up to 29 % of outliers, as
    those of a warm-up, do not move; samples far from it do not count in the second one. `fixed` is
    at least 0.
    """
    if not has_spread(x):
        return None
    first = np.linspace(0, len(x) - 1, min(len(x), _FIRST_SAMPLES)).astype(np.int64)
    # Not scipy.stats: each process would take 17 MB and 0.3 s for it.
    left, right = first[np.stack(np.triu_indices(len(first), 1))]
    pairs = x[left] != x[right]
    slope = np.median((y[left] - y[right])[pairs] / (x[left] - x[right])[pairs])
    start = np.median(y[first]) - slope * np.median(x[first])
    distance = np.abs(y - start - slope * x)
    near = distance <= _OUTLIER * _NORMAL * np.median(distance) + 1e-12
    x, y = x[near], y[near]
    if not has_spread(x):
        return None
    middle = x.mean()
    square = float(((x - middle) ** 2).sum())
    slope = float(((x - middle) * y).sum()) / square
    fixed = float(y.mean() - slope * middle)
    rest = y - fixed - slope * x
    error = float(np.sqrt((rest**2).sum() / (len(x) - 2) / square))
    return Line(max(0.0, fixed), slope, error, len(x))


def has_spread(x: Floats) -> bool:
    """Return whether samples are enough, and differ enough, to have a slope."""
    if len(x) < LEAST_SAMPLES:
        return False
    low, middle, high = np.percentile(x, (10, 50, 90))
    return bool(high - low > LEAST_SPREAD * middle)


# A node that is busy for less of its time mostly shows the fixed cost of a micro-batch.
LEAST_BUSY: Final = 0.25
# The same of the time that an aggregator node merges.
LEAST_MERGE_BUSY: Final = 0.05
# The quotients of the batches with the most records are the nearest to the cost of a record.
_FULLEST: Final = 10
# A changed capacity holds for micro-batches that begin so much later.
APPLIED: Final = timedelta(seconds=10)

# The series of micro-batches that costs are computed from.
COST_SERIES: Final = (
    "loads", "busy", "merge_busy", "merged", "tasks", "split_loads", "split_utilisation", "work_ms",
)  # fmt: skip


class BatchSeconds(NamedTuple):
    """The time of micro-batches: outside of their longest node, and growth per time of that node.

    `growth` is at least 1: the time of a batch grows by so much per time of the node. `usual_s`:
    the median duration.
    """

    outside_s: float
    growth: float
    usual_s: float = 0.0

    def usable(self, fixed_s: float, batch_s: float) -> float:
        """Return the share of a batch of `batch_s` that a node with a fixed time has for records.

        Batches take at least twice the time of one without records, as shorter ones are impossible.
        """
        empty = self.outside_s + self.growth * fixed_s
        length = max(batch_s, 2 * empty)
        return (length - empty) / (self.growth * length)


@dataclass(frozen=True)
class NodeWork:
    """What samples show of the work of a node, without merging.

    `quotient`: seconds per record in batches with many records, fixed cost included, so an upper
    bound of the cost; `busy_quotient`: the median while the node is busy for a quarter of its time,
    None if it is not, in less than 20 batches, or if its records differ, so that there is a `line`:
    seconds of a batch over its records.
    """

    quotient: float
    busy_quotient: float | None
    line: Line | None


def node_work(batches: Grid) -> dict[int, NodeWork]:
    """Return the work of the nodes with records, by index; `batches`: with `COST_SERIES`.

    Only batches in which a node has as many tasks as in the newest one count.
    """
    loads, seconds = batches["loads"], batches.measured_s[:, None]
    columns = loads * seconds, _computing(batches) * seconds, batches["busy"], batches["tasks"]
    rows = np.stack([np.nan_to_num(column) for column in columns])
    are_known = _with_load(batches)
    return {
        node: _work(rows[:, are_known[:, node], node].T)
        for node in np.flatnonzero(are_known.any(axis=0)).tolist()
    }


def _with_load(batches: Grid) -> Flags:
    """Return where a node had records and reported its time, bool[t, nodes]."""
    known: Flags = (np.nan_to_num(batches["loads"]) > 0) & ~np.isnan(batches["busy"])
    return known


def _computing(batches: Grid) -> Floats:
    """Return the shares of time that nodes compute without merging, float64[t, nodes]."""
    # Batches without aggregator nodes may have no time of merging.
    shares: Floats = np.maximum(0.0, batches["busy"] - np.nan_to_num(batches["merge_busy"]))
    return shares


def _work(rows: Floats) -> NodeWork:
    """Return the work that samples show: records, seconds, share of time and tasks of batches."""
    records, seconds, busy = rows[rows[:, 3] == rows[-1, 3], :3].T
    quotients = seconds / records
    fullest = np.argsort(records)[-max(1, len(records) // _FULLEST) :]
    is_busy = busy >= LEAST_BUSY
    busy_quotient = None
    # Of batches with different records, the slope is the cost. Quotients of busy ones would be
    # those of the batches that were slow for other reasons.
    is_even = len(records) >= LEAST_SAMPLES and not has_spread(records)
    if np.median(busy) >= LEAST_BUSY and is_even:
        busy_quotient = round(float(np.median(quotients[is_busy])), 9)
    quotient = round(float(np.median(quotients[fullest])), 9)
    return NodeWork(quotient, busy_quotient, line_through(records, seconds))


def operator_seconds(batches: Grid, emulated: Mapping[int, float]) -> float | None:
    """Return the seconds that a node needs per record, None: not measured.

    The median over batches and nodes of the share of time that a node computes, without merging,
    over its records/s, of nodes with records that are busy for a quarter of their time; else the
    median of the slopes of nodes. `emulated`: the capacities in records/s of nodes that the data
    plane limits to them, by index.
    """
    are_known, quotients = _with_load(batches), _computing(batches)
    costs: list[float] = []
    for node in np.flatnonzero(are_known.any(axis=0)).tolist():
        known = are_known[:, node]
        if emulated.get(node):
            costs += [1 / emulated[node]] * int(known.sum())
        else:
            known = known & (batches["busy"][:, node] >= LEAST_BUSY)
            costs += (quotients[known, node] / batches["loads"][known, node]).tolist()
    if not costs:
        lines = (work.line for work in node_work(batches).values())
        costs = [line.slope for line in lines if line is not None and line.is_sure]
    return _rounded(costs)


def merge_seconds(batches: Grid) -> float | None:
    """Return the seconds that an aggregator node needs per partial result, None: not measured.

    The slope, else the median of the quotients if it mostly merges for a twentieth of its time.
    """
    merged, busy = batches["merged"], batches["merge_busy"]
    known = (np.nan_to_num(merged) > 0) & ~np.isnan(busy)
    return _seconds_per_record(batches, merged, busy, known, LEAST_MERGE_BUSY)


def split_seconds(batches: Grid, changed_at: datetime | None) -> float | None:
    """Return the seconds that a split node needs per record, None: not measured.

    `changed_at`: since when split nodes have their capacity, as an emulated one decides about their
    time.

    The slope, else the median of the quotients if split nodes are mostly busy for a quarter of
    their time, in at least 20 batches of one.
    """
    if changed_at is not None:
        batches = batches.since(changed_at + APPLIED)
    rates, busy = batches["split_loads"], batches["split_utilisation"]
    known = (np.nan_to_num(rates) > 0) & (np.nan_to_num(busy) > 0)
    return _seconds_per_record(batches, rates, busy, known, LEAST_BUSY)


def _seconds_per_record(
    batches: Grid, rates: Floats, shares: Floats, known: Flags, least_busy: float
) -> float | None:
    """Return the slope of seconds over numbers, else their quotient while it is mostly busy.

    `rates`: numbers per second; `shares`: of time. The quotient of a few slow batches is not a
    cost: they were slow for other reasons, as a busy machine.
    """
    number, busy = rates[known], shares[known]
    if not len(number):
        return None
    batch_s = np.broadcast_to(batches.measured_s[:, None], rates.shape)[known]
    line = line_through(number * batch_s, busy * batch_s)
    if line is not None and line.is_sure:
        return _rounded([line.slope])
    if len(number) < LEAST_SAMPLES or np.median(busy) < least_busy:
        return None
    return _rounded((busy / number)[busy >= least_busy].tolist())


def batch_seconds(batches: Grid) -> BatchSeconds | None:
    """Return the time of micro-batches as a line over that of their longest node, None: unknown."""
    work_s, loads = batches["work_ms"] / 1000, np.nan_to_num(batches["loads"]).sum(axis=1)
    known = (np.nan_to_num(work_s) > 0) & (loads > 0)
    longest = np.fmax.reduce(batches["busy"], axis=1, initial=np.nan) * batches.measured_s
    known &= ~np.isnan(longest)
    if not known.any():
        return None
    busy_s, work_s = longest[known], work_s[known]
    usual_s, line = round(float(np.median(work_s)), 6), line_through(busy_s, work_s)
    if line is not None and line.is_sure and line.slope > 1:
        return BatchSeconds(round(line.fixed, 6), round(line.slope, 6), usual_s)
    outside_s = max(0.0, float(np.median(work_s - busy_s)))
    return BatchSeconds(round(outside_s, 6), 1.0, usual_s)


def partials_per_record(batches: Grid, records_per_s: float) -> float | None:
    """Return the merged partial results per record, None: not measured.

    `records_per_s`: of all queries with an aggregator node, in the time of the batches.
    """
    merged = batches["merged"]
    sums = np.nansum(merged[~np.isnan(merged).all(axis=1)], axis=1)
    if not records_per_s or not sums.any():
        return None
    return round(float(sums.mean()) / records_per_s, 9)


def _rounded(costs: Sequence[float]) -> float | None:
    return round(median(costs), 9) if costs else None
