"""Samples from telemetry rows, and roll-ups from samples; pure functions.

A sample has the figures of `telemetry.figures` by name, "t" in ms since the epoch, and "span_s":
the seconds since the previous batch, over which rates are taken.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from controlplane.telemetry.figures import FIGURES, Figure, RollUp

Row = Mapping[str, Any]
Sample = dict[str, Any]

# Two batches that were emitted within a clock's tick must not make an infinite rate.
MIN_SECONDS = 0.05


@dataclass(frozen=True)
class PreviousBatch:
    """The previous batch: when it was emitted (None: unknown) and Spark's batch time."""

    emitted_ms: int | None
    trigger_ms: int
    batch_ms: float | None = None


def sample_of(row: Row, before: PreviousBatch, capacities: Sequence[float]) -> Sample:
    """Return the sample of one batch; capacities in records/s by node index."""
    seconds = _seconds(row, before)
    nodes = {node["node"]: node for node in row["nodes"]}
    count = max(len(capacities), max(nodes, default=-1) + 1)
    loads = [nodes[i]["records"] / seconds if i in nodes else 0.0 for i in range(count)]
    latency = row["latency"] or {}
    return {
        "t": row["emitted_ms"],
        "version": row["version"],
        "in": row["records_in"] / seconds,
        "read": row["records_read"] / seconds,
        "delivered": row["delivered"] / seconds,
        "rf": row["delivered"] / row["records_read"] if row["records_read"] else None,
        "imbalance": imbalance(loads, capacities),
        "p50": latency.get("p50"),
        "p95": latency.get("p95"),
        "p99": latency.get("p99"),
        "batch_ms": before.batch_ms,
        "loads": loads,
        "busy": [nodes[i]["busy_ms"] / 1000 / seconds if i in nodes else 0.0 for i in range(count)],
        "tasks": [nodes[i]["tasks"] if i in nodes else 0 for i in range(count)],
        "late": row["late"] / seconds,
        "dropped": sum(row.get("dropped", {}).values()) / seconds,
        "waiting": row.get("waiting", 0),
        "state_bytes": sum(node["state_bytes"] for node in row["nodes"]),
        "end": row.get("end"),
        "span_s": seconds,
        "event_ms": row["event_ms"],
        "emitted_ms": row["emitted_ms"],
    }


def imbalance(loads: Sequence[float], capacities: Sequence[float]) -> float | None:
    """Return the largest load/capacity minus the mean; None without nodes."""
    shares = [load / capacity for load, capacity in zip(loads, capacities, strict=False)]
    return max(shares) - sum(shares) / len(shares) if shares else None


def _seconds(row: Row, before: PreviousBatch) -> float:
    if before.emitted_ms is None:
        return max(before.trigger_ms / 1000, MIN_SECONDS)
    emitted_ms: int = row["emitted_ms"]
    return max((emitted_ms - before.emitted_ms) / 1000, MIN_SECONDS)


def rolled_up(samples: Sequence[Sample], t_ms: int) -> Sample:
    """Return one sample for a bucket that begins at t_ms.

    Means of rates, loads and of the median latency; maxima of p95 and p99, so that no peak is
    smoothed away; the last of version, tasks, state and times. Nulls do not count.
    """
    return {"t": t_ms} | {figure.name: _merged(figure, samples) for figure in FIGURES}


def _merged(figure: Figure, samples: Iterable[Sample]) -> Any:
    values = _present(samples, figure.name)
    if figure.roll_up is RollUp.LAST:
        return values[-1] if values else None
    if figure.roll_up is RollUp.MAX:
        return max(values, default=None)
    return _mean_list(values) if figure.per_node else _mean(values)


def _present(samples: Iterable[Sample], name: str) -> list[Any]:
    return [value for sample in samples if (value := sample.get(name)) is not None]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _mean_list(lists: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean per position; nodes are never removed, so the longest is the newest."""
    width = max(map(len, lists), default=0)
    return [_mean([values[i] for values in lists if i < len(values)]) or 0.0 for i in range(width)]


def moment_of(t_ms: int) -> datetime:
    """Return the moment of a time in ms since the epoch."""
    return datetime.fromtimestamp(t_ms / 1000, UTC)
