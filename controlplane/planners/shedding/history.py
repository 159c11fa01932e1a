"""The history of a ladder: when which rung dropped records, and how many."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import Any, Final

from controlplane.models import Cluster, SheddingInterval
from controlplane.pagination.chunks import delete_in_chunks
from controlplane.telemetry.samples import Row, Sample, dropped_once, moment_of
from controlplane.wire.routing.drop_rules import INPUT, Edge

# An interval ends when nothing was dropped for so long.
LONGEST_GAP: Final = timedelta(seconds=60)
# A change of the rung so soon after the beginning of an interval belongs to it: with few records a
# second, the position passes between neighbouring rungs in every batch.
SHORTEST: Final = timedelta(seconds=10)
KEPT: Final = timedelta(days=90)
# The edges of an interval that are stored: those that drop the most; streams: the largest.
MOST_EDGES: Final = 1_000
MOST_STREAMS: Final = 1_000


def record(cluster: Cluster, rows: Sequence[Row], samples: Sequence[Sample]) -> None:
    """Count what a ladder dropped, in the transaction that stores the relay's position."""
    newest: SheddingInterval | None = None
    for row, sample in zip(rows, samples, strict=False):
        position = row.get("ladder_position") or 0.0
        by_name = row.get("ladder_dropped", {})
        dropped = {_edge(name): n for name, n in by_name.items() if n}
        if not position and not dropped:
            continue
        newest = newest or SheddingInterval.objects.filter(cluster=cluster).first()
        newest = _extended(cluster, newest, row, sample, max(1, ceil(position)))
        _add(newest, position, dropped)
        newest.read += row["read"]
        newest.dropped += dropped_once(row["streams"], by_name)
        _add_streams(newest, row["streams"])
        _add_latency(newest, row.get("latency") or {})
        newest.save()


def _extended(
    cluster: Cluster, newest: SheddingInterval | None, row: Row, sample: Sample, rung: int
) -> SheddingInterval:
    """Return the interval of a row: the newest one if it goes on, else another one.

    Its rung is the highest one.
    """
    end = moment_of(row["emitted_ms"])
    start = max(end - timedelta(seconds=sample["span_s"]), end - LONGEST_GAP)
    if (
        newest is not None
        and end - newest.ended_at <= LONGEST_GAP
        and (newest.rung == rung or end - newest.started_at <= SHORTEST)
    ):
        newest.rung = max(newest.rung, rung)
    else:
        begin = start if newest is None else max(start, newest.ended_at)
        newest = SheddingInterval(cluster=cluster, rung=rung, position=0.0, started_at=begin)
    newest.ended_at = end
    return newest


def _add(interval: SheddingInterval, position: float, dropped: Mapping[Edge, int]) -> None:
    totals = {(stream, query): n for stream, query, n in interval.by_edge}
    for edge, records in dropped.items():
        totals[edge] = totals.get(edge, 0) + records
    largest = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:MOST_EDGES]
    interval.by_edge = [[*edge, records] for edge, records in largest]
    interval.position = max(interval.position, position)


def _add_streams(interval: SheddingInterval, read: Mapping[str, int]) -> None:
    """Add the records read of each stream, by its id as text."""
    totals = dict(interval.by_stream)
    for name, records in read.items():
        totals[int(name)] = totals.get(int(name), 0) + records
    largest = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:MOST_STREAMS]
    interval.by_stream = [[stream, records] for stream, records in largest if records]


def _add_latency(interval: SheddingInterval, latency: Mapping[str, Any]) -> None:
    """Add the p95 latency of a micro-batch with `n` results."""
    results, p95 = latency.get("n") or 0, latency.get("p95")
    if not results or p95 is None:
        return
    interval.timed += results
    interval.p95_ms += (p95 - interval.p95_ms) * results / interval.timed


def _edge(name: str) -> Edge:
    """Return the edge of a name in a telemetry row: `stream` or `stream>query`."""
    stream, _, query = name.partition(">")
    return int(stream), int(query or INPUT)


def intervals(
    cluster: Cluster, start: datetime, stop: datetime, most: int = 200
) -> list[SheddingInterval]:
    """Return the intervals that overlap a time range, the newest first."""
    rows = SheddingInterval.objects.filter(cluster=cluster, ended_at__gt=start, started_at__lt=stop)
    return list(rows.order_by("-started_at", "-id")[:most])


def totals(rows: Sequence[SheddingInterval]) -> dict[str, Any]:
    """Return the seconds, records read and records dropped of intervals."""
    seconds = sum((row.ended_at - row.started_at).total_seconds() for row in rows)
    return {
        "seconds": round(seconds, 1),
        "read": sum(row.read for row in rows),
        "dropped": sum(row.dropped for row in rows),
        "rung": max((row.rung for row in rows), default=0),
    }


def prune_intervals(now: datetime) -> int:
    """Delete the intervals that are kept no longer; return how many."""
    old = SheddingInterval.objects.filter(ended_at__lt=now - KEPT)
    return delete_in_chunks(old)
