"""Costs of queries from samples of telemetry: per record, and per merged partial result.

A micro-batch has a fixed cost, so the time of a batch over its records exceeds the cost of a
record, the more the fewer records it has. The slope of the time over the records does not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.planning.measured.slopes import Line, has_spread, line_through

# A node that is busy for less of its time mostly shows the fixed cost of a micro-batch.
LEAST_BUSY: Final = 0.25
# The same of the time that an aggregator node merges.
LEAST_MERGE_BUSY: Final = 0.05
# The quotients of the batches with the most records are the nearest to the cost of a record.
_FULLEST: Final = 10

Samples = Sequence[Mapping[str, Any]]


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
    None if it is not, or if its records differ, so that there is a `line`: seconds of a batch over
    its records.
    """

    quotient: float
    busy_quotient: float | None
    line: Line | None


def node_work(samples: Samples) -> dict[int, NodeWork]:
    """Return the work of the nodes with records, by index.

    Only samples in which a node has as many tasks as in the newest one count.
    """
    by_node: dict[int, list[tuple[float, float, float, int]]] = {}
    for sample in samples:
        batch_s, tasks = _batch_s(sample), sample.get("tasks") or ()
        for node, (load, busy, merge_busy) in enumerate(_of_nodes(sample)):
            if load > 0:
                count = tasks[node] if node < len(tasks) else 0
                row = (load * batch_s, max(0.0, busy - merge_busy) * batch_s, busy, count)
                by_node.setdefault(node, []).append(row)
    return {node: _work(np.array(rows, np.float64)) for node, rows in by_node.items()}


def _work(rows: Floats) -> NodeWork:
    """Return the work that samples show: records, seconds, share of time and tasks of batches."""
    records, seconds, busy = rows[rows[:, 3] == rows[-1, 3], :3].T
    quotients = seconds / records
    fullest = np.argsort(records)[-max(1, len(records) // _FULLEST) :]
    is_busy = busy >= LEAST_BUSY
    busy_quotient = None
    # Of batches with different records, the slope is the cost. Quotients of busy ones would be
    # those of the batches that were slow for other reasons.
    if np.median(busy) >= LEAST_BUSY and not has_spread(records):
        busy_quotient = round(float(np.median(quotients[is_busy])), 9)
    quotient = round(float(np.median(quotients[fullest])), 9)
    return NodeWork(quotient, busy_quotient, line_through(records, seconds))


def operator_seconds(samples: Samples, emulated: Mapping[int, float]) -> float | None:
    """Return the seconds that a node needs per record, None: not measured.

    The median over samples and nodes of the share of time that a node computes, without merging,
    over its records/s, of nodes with records that are busy for a quarter of their time; else the
    median of the slopes of nodes. `emulated`: the capacities in records/s of nodes that the data
    plane limits to them, by index.
    """
    costs = []
    for sample in samples:
        for node, (load, busy, merge_busy) in enumerate(_of_nodes(sample)):
            if load and emulated.get(node):
                costs.append(1 / emulated[node])
            elif load and busy >= LEAST_BUSY:
                costs.append(max(0.0, busy - merge_busy) / load)
    if not costs:
        lines = (work.line for work in node_work(samples).values())
        costs = [line.slope for line in lines if line is not None and line.is_sure]
    return _rounded(costs)


def _batch_s(sample: Mapping[str, Any]) -> float:
    """Return the seconds since the batch before, to which the rates of a sample refer."""
    return float(sample.get("span_s") or 1.0)


def _of_nodes(sample: Mapping[str, Any]) -> Iterator[tuple[float, float, float]]:
    """Yield records/s, share of time that it computes and that it merges, of each node."""
    loads, busy = sample.get("loads") or (), sample.get("busy") or ()
    # Samples without aggregator nodes may have no `merge_busy`.
    merge_busy = chain(sample.get("merge_busy") or (), (0.0 for _ in loads))
    return zip(loads, busy, merge_busy, strict=False)


def merge_seconds(samples: Samples) -> float | None:
    """Return the seconds that an aggregator node needs per partial result, None: not measured.

    The slope, else the median of the quotients if it mostly merges for a twentieth of its time.
    """
    rows = [
        (merged, busy, _batch_s(sample))
        for sample in samples
        for merged, busy in zip(
            sample.get("merged") or (), sample.get("merge_busy") or (), strict=False
        )
        if merged
    ]
    return _seconds_per_record(rows, LEAST_MERGE_BUSY)


def split_seconds(samples: Samples) -> float | None:
    """Return the seconds that a split node needs per record, None: not measured.

    The slope, else the median of the quotients if split nodes are mostly busy for a quarter of
    their time.
    """
    rows = [
        (rate, busy, _batch_s(sample))
        for sample in samples
        for rate, busy in zip(
            sample.get("split_loads") or (), sample.get("split_utilisation") or (), strict=False
        )
        if rate and busy
    ]
    return _seconds_per_record(rows, LEAST_BUSY)


def _seconds_per_record(
    rows: Sequence[tuple[float, float, float]], least_busy: float
) -> float | None:
    """Return the slope of seconds over numbers, else their quotient while it is mostly busy.

    `rows`: numbers per second, shares of time, and the seconds of the batch. The quotient of a few
    slow batches is not a cost: they were slow for other reasons, as a busy machine.
    """
    if not rows:
        return None
    number, busy, batch_s = np.array(rows, np.float64).T
    line = line_through(number * batch_s, busy * batch_s)
    if line is not None and line.is_sure:
        return _rounded([line.slope])
    if np.median(busy) < least_busy:
        return None
    return _rounded((busy / number)[busy >= least_busy].tolist())


def batch_seconds(samples: Samples) -> BatchSeconds | None:
    """Return the time of micro-batches as a line over that of their longest node, None: unknown."""
    rows = [
        (max(busy) * (_batch_s(sample)), sample["work_ms"] / 1000)
        for sample in samples
        if (busy := sample.get("busy")) and sample.get("work_ms") and sum(sample.get("loads") or ())
    ]
    if not rows:
        return None
    busy_s, work_s = np.array(rows, np.float64).T
    usual_s, line = round(float(np.median(work_s)), 6), line_through(busy_s, work_s)
    if line is not None and line.is_sure and line.slope > 1:
        return BatchSeconds(round(line.fixed, 6), round(line.slope, 6), usual_s)
    outside_s = max(0.0, float(np.median(work_s - busy_s)))
    return BatchSeconds(round(outside_s, 6), 1.0, usual_s)


def partials_per_record(samples: Samples, records_per_s: float) -> float | None:
    """Return the merged partial results per record, None: not measured.

    `records_per_s`: of all queries with an aggregator node, in the time of the samples.
    """
    merged = [sum(sample["merged"]) for sample in samples if sample.get("merged") is not None]
    if not records_per_s or not any(merged):
        return None
    return round(sum(merged) / len(merged) / records_per_s, 9)


def _rounded(costs: Sequence[float]) -> float | None:
    return round(median(costs), 9) if costs else None
