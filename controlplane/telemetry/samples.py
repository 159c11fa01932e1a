"""Samples from telemetry rows; pure functions.

A sample has the figures of `wire.figures` by name, "t" in ms since the epoch, and "span_s":
the seconds since the previous batch, over which rates are taken; of the first batch, for how long
its oldest records have waited, at most `LONGEST_FIRST_S`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from algorithms.balance import imbalance
from controlplane.wire.figures import FIGURES, Figure, Source

Row = Mapping[str, Any]
Sample = dict[str, Any]

# Two batches that were emitted within a clock's tick must not make an infinite rate.
MIN_SECONDS = 0.05
# Records of a source may be days old when a cluster first reads them: a sample that weighed as much
# would hide all others of its means.
LONGEST_FIRST_S = 60.0


@dataclass(frozen=True)
class PreviousBatch:
    """The previous batch: when it was emitted (None: unknown) and Spark's batch time.

    `arrived`: the records/s that arrived in the log since its reading, None if not known.
    """

    emitted_ms: int | None
    trigger_ms: int
    batch_ms: float | None = None
    arrived: float | None = None


def sample_of(row: Row, before: PreviousBatch, capacities: Sequence[float | None]) -> Sample:
    """Return the sample of one batch; capacities in records/s by node, None if not active."""
    seconds = _seconds(row, before)
    nodes = {node["node"]: node for node in row["nodes"]}
    count = max(len(capacities), max(nodes, default=-1) + 1)
    parts = {
        "node": [nodes.get(index, {}) for index in range(count)],
        "split": _split_parts(row),
    }
    sample: Sample = {
        figure.name: [_part_value(figure, part, seconds) for part in parts[figure.per]]
        if figure.per
        else _value(figure, row, seconds)
        for figure in FIGURES
    }
    streams = row.get("streams") or {}
    read, dropped = (
        sum(streams.values()),
        dropped_once(streams, row.get("dropped") or {}, row.get("ladder_dropped") or {}),
    )
    return sample | {
        "t": row["emitted_ms"],
        "span_s": seconds,
        "rf": row["delivered"] / row["read"] if row["read"] else None,
        "imbalance": _imbalance(sample["loads"], capacities, before.arrived, sample["in"]),
        "capacity": capacities,
        "dropped": dropped / seconds,
        "kept": 1 - dropped / read if read else None,
        "batch_ms": before.batch_ms,
        "arrived": before.arrived,
    }


def _split_parts(row: Row) -> list[Mapping[str, Any]]:
    """Return the part of a row about each split node by index, empty for closed ones."""
    parts = {part["split"]: part for part in row.get("splits", ())}
    return [parts.get(index, {}) for index in range(max(parts, default=-1) + 1)]


def _part_value(figure: Figure, part: Row, seconds: float) -> Any:
    """Return the value of a figure in the part of a row about one node; no latency is None."""
    value = _value(figure, part, seconds)
    return value if figure.source is Source.LATENCY else value or 0


def _value(figure: Figure, row: Row, seconds: float) -> Any:
    """Return the value of a figure in a row, or in the part of a row about one node."""
    if figure.source is Source.LATENCY:
        return (row.get("latency") or {}).get(figure.row_key)
    if figure.source is Source.PER_SECOND:
        return row.get(figure.row_key, 0) / seconds
    return row.get(figure.row_key)


def _imbalance(
    loads: Sequence[float],
    capacities: Sequence[float | None],
    arrived: float | None,
    read: float,
) -> float | None:
    """Return the imbalance of active nodes by arriving records; None without any load."""
    part = arrived / read if arrived is not None and read else 1.0
    pairs = zip(loads, capacities, strict=False)
    shares = [part * load / capacity for load, capacity in pairs if capacity is not None]
    return imbalance(np.array(shares)) if any(shares) else None


def dropped_once(streams: Mapping[str, int], *causes: Mapping[str, int]) -> int:
    """Return how many of the records read of streams were dropped on edges, each counted once.

    `causes`: dropped records by edge. Edges of a stream drop different parts: the one that drops
    the most counts.
    """
    by_edge: dict[str, int] = {}
    for dropped in causes:
        for edge, records in dropped.items():
            by_edge[edge] = by_edge.get(edge, 0) + records
    most: dict[str, int] = {}
    for edge, records in by_edge.items():
        stream = edge.partition(">")[0]
        most[stream] = max(most.get(stream, 0), min(records, streams.get(stream, 0)))
    return sum(most.values())


def _seconds(row: Row, before: PreviousBatch) -> float:
    emitted_ms: int = row["emitted_ms"]
    # The first batch, or a clock that was set back: its records came while the oldest ones waited.
    if before.emitted_ms is None or emitted_ms < before.emitted_ms:
        waited_s = ((row.get("latency") or {}).get("p99") or 0.0) / 1000
        return max(before.trigger_ms / 1000, min(waited_s, LONGEST_FIRST_S), MIN_SECONDS)
    return max((emitted_ms - before.emitted_ms) / 1000, MIN_SECONDS)


def value_at(sample: Mapping[str, Any], name: str, index: int) -> Any:
    """Return the value of a figure of a node or split node in a sample, None if it is unknown."""
    values: Sequence[Any] = sample.get(name) or ()
    return values[index] if index < len(values) else None


def moment_of(t_ms: int) -> datetime:
    """Return the moment of a time in ms since the epoch."""
    return datetime.fromtimestamp(t_ms / 1000, UTC)
