"""The telemetry row of a micro-batch, aggregated from the reports of its nodes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import redis

from algorithms.vocabulary import Ints
from controlplane.wire.drop_counts import merged
from controlplane.wire.log.values import position_key
from workers.pipeline.exchange.output import NodeMeasures
from workers.pipeline.routing.key_grouping import BacklogLoad, NodeLoads
from workers.pipeline.sources.cluster_sources import cuts_in


def telemetry_row(reports: Sequence[NodeMeasures], emitted_ms: int) -> dict[str, Any]:
    """Return the measures of one batch.

    Figures have the names of `wire.figures`; rates are totals of the batch. `delivered` counts a
    record once per node it was sent to; `read` counts records of streams with at least one query.
    Their quotient is the replication factor of the batch (paper 000, section 6.1). Latencies run
    from the append to the log to `emitted_ms`, those of waiting records up to now.
    """
    sources = [source for report in reports for source in report.sources]
    nodes = sorted(reports, key=lambda report: report.node)
    return {
        "batch": reports[0].batch,
        "version": reports[0].version,
        # All split nodes read the same range of the log.
        "start": sources[0]["start"] if sources else None,
        "end": sources[0]["end"] if sources else None,
        "read_position": _read_position(sources),
        **_times(sources, emitted_ms),
        **_totals(nodes, sources),
        "event_ms": max((r.event_ms for r in reports if r.event_ms is not None), default=None),
        "latency": latency(reports, emitted_ms),
        "streams": _by_stream(sources, "streams"),
        # The newest event time of each stream in this batch (ms): its watermark follows from it.
        "newest": _by_stream(sources, "newest"),
        # What each stream's split node has still to read: records, and the age of the oldest (ms).
        "behind": _behind(sources),
        # Up to where streams are read that are read less far than `end`.
        "delayed": _by_stream(sources, "delayed"),
        "sources": cuts_in(sources),
        "splits": [_split_row(source) for source in sorted(sources, key=lambda s: s["split"])],
        "nodes": [_node_row(report, emitted_ms) for report in nodes],
        **_shedding(nodes, sources),
        **_rejected(nodes, sources),
        # Queries whose key grouping had no state, because the bound of the offset was reached.
        "fresh_groupings": sorted({query for s in sources for query in s.get("fresh", ())}),
        # An administrator has skipped the batch: its records were not read.
        "skipped": any(source.get("skipped") for source in sources),
        "faults": [row for report in nodes for row in _fault_rows(report)],
        **_moves(nodes),
    }


def _read_position(sources: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the position up to which all streams are read, None without a report."""
    ends = [place for s in sources for place in (s["end"], *s.get("delayed", {}).values())]
    return min(ends, key=position_key, default=None)


def _times(sources: Sequence[Mapping[str, Any]], emitted_ms: int) -> dict[str, int | None]:
    """Return when the batch was emitted, the time from its plan until then, and when it was read.

    In ms; `read_ms`: when the split nodes have read the backlogs that they report. None without
    reports.
    """
    planned = [source["clock_ms"] for source in sources if "clock_ms" in source]
    read = [source["read_ms"] for source in sources if "read_ms" in source]
    return {
        "emitted_ms": emitted_ms,
        "work_ms": max(0, emitted_ms - min(planned)) if planned else None,
        "read_ms": max(read, default=None),
    }


def _behind(sources: Sequence[Mapping[str, Any]]) -> dict[str, list[int]]:
    return {
        stream: [records, max(0, source["clock_ms"] - oldest_ms)]
        for source in sources
        for stream, (records, oldest_ms) in source.get("behind", {}).items()
    }


def _fault_rows(report: NodeMeasures) -> list[dict[str, Any]]:
    return [
        {"query": query, "run": incarnation, "node": report.node, "why": why, "stage": stage,
         "sample": sample}
        for query, incarnation, why, stage, sample in report.faults
    ]  # fmt: skip


def _totals(nodes: Sequence[NodeMeasures], sources: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Return the figures of a batch that are totals over split nodes and nodes."""
    return {
        "in": sum(sum(source["streams"].values()) for source in sources),
        "read": sum(source["read"] for source in sources),
        "delivered": sum(report.records for report in nodes),
        "late": sum(report.late for report in nodes),
        "waiting": sum(report.waiting for report in nodes),
        "state_bytes": sum(report.state_bytes for report in nodes),
    }


def _by_stream(sources: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return a measure of the split nodes by stream; counts of a topic are added up.

    Only the partitions of a topic are read by several split nodes; all have one newest time.
    """
    result: dict[str, Any] = {}
    for source in sources:
        for stream, value in source.get(name, {}).items():
            known = result.get(stream)
            result[stream] = value if known is None else _sum(known, value, name)
    return result


def _sum(known: Any, value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return dict(Counter(known) + Counter(value))
    return max(known, value) if name == "newest" else known + value


def _rejected(nodes: Sequence[NodeMeasures], sources: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return late records by stream and by query, and dead letters by stream and reason."""
    late: Counter[str] = Counter()
    for report in nodes:
        late.update({str(query): records for query, records in report.late_queries})
    dead = _by_stream(sources, "dead")
    return {"late_streams": _by_stream(sources, "late"), "late_queries": dict(late), "dead": dead}


def _moves(nodes: Sequence[NodeMeasures]) -> dict[str, Any]:
    """Return the tasks that nodes exported and imported."""
    return {
        "moves": [
            {"query": query, "task": task, "from": report.node, "bytes": size, "waited": waited}
            for report in nodes
            for query, task, size, waited in report.moves
        ],
        "imported_tasks": sum(len(report.imported) for report in nodes),
        # A task's records of the batch before met its state where it was, those of this one here:
        # what lies between is the time from one batch to the next, as for every other task.
        "arrived_tasks": [
            {"query": query, "task": task, "to": report.node, "gap_ms": report.elapsed_ms}
            for report in nodes
            for query, task in report.imported
        ],
    }


def latency(reports: Sequence[NodeMeasures], emitted_ms: int) -> dict[str, float] | None:
    """Return record count, mean and percentiles (ms) over delivered records, None without any.

    A record that waits has at least its age as latency. Percentiles that are larger with the
    waiting records count, so that a node that processes no records has a latency.
    """
    # Of a block without a record for a node only its event time came.
    processed = _waits([report.arrivals for report in reports], emitted_ms)
    waiting = _waits([report.waiting_since for report in reports], emitted_ms)
    every = np.concatenate([processed, waiting], axis=1)
    if not every.shape[1]:
        return None
    counted = processed if processed.shape[1] else waiting
    mean = round(float(counted[0] @ counted[1]) / int(counted[1].sum()), 1)
    largest = np.maximum(_percentiles(every), _percentiles(counted)).tolist()
    p50, p95, p99 = largest
    return {"n": int(processed[1].sum()), "mean": mean, "p50": p50, "p95": p95, "p99": p99}


def _waits(arrivals: Sequence[Sequence[Sequence[int]]], emitted_ms: int) -> Ints:
    """Return how long records waited (ms) and their numbers, int64[2, pairs]."""
    pairs = [(emitted_ms - ms, n) for of_node in arrivals for ms, n in of_node if n]
    return np.array(pairs, np.int64).reshape(-1, 2).T


def _percentiles(waits: Ints) -> Ints:
    """Return the median, 95th and 99th percentile of waits (ms) by their numbers of records."""
    waited, records = waits
    order = np.argsort(waited)
    share = np.cumsum(records[order]) / records.sum()
    offset = np.searchsorted(share, [0.5, 0.95, 0.99])
    result: Ints = waited[order][np.minimum(offset, len(order) - 1)]
    return result


def _split_row(source: dict[str, Any]) -> dict[str, Any]:
    """Return the measures of a split node, by the names of `wire.figures`.

    `capacity`: the emulated one, else records per second of work, None without records. `split_
    latency`: how long a record that arrives now waits until the queue before it is read (ms), at
    least the age of the oldest record in it.
    """
    records = sum(source["streams"].values())
    behind = source.get("behind", {}).values()
    waiting, busy_ms = sum(count for count, _ in behind), source.get("busy_ms", 0.0)
    emulated, elapsed_ms = source.get("capacity"), source.get("elapsed_ms")
    measured = records / busy_ms * 1000 if records and busy_ms else None
    capacity = emulated or measured
    used_ms = records / emulated * 1000 if emulated else busy_ms
    ages = [max(0, source["clock_ms"] - oldest_ms) for _, oldest_ms in behind]
    return {
        "split": source["split"],
        "split_loads": records,
        "bytes": source["bytes"],
        "busy": round(busy_ms / 1000, 4),
        "capacity": None if capacity is None else round(capacity, 3),
        "split_waiting": waiting,
        "split_latency": round(max([waiting / capacity * 1000 if capacity else 0, *ages]), 1),
        "split_utilisation": round(used_ms / elapsed_ms, 4) if elapsed_ms else None,
    }


def _shedding(nodes: Sequence[NodeMeasures], sources: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the records that each edge dropped, by its rule and by the ladder of drop rules.

    And the same records by event time (rows of `wire.drop_counts.DropCount`), the position on the
    armed ladder, and the input factor: None without a ladder.
    """
    position, factor = next((s["ladder"] for s in sources if "ladder" in s), (None, None))
    return {
        "dropped": _dropped(nodes, sources, "dropped"),
        "ladder_dropped": _dropped(nodes, sources, "ladder_dropped"),
        "drop_counts": merged(
            [
                *(source.get("drop_counts", ()) for source in sources),
                *(report.drop_counts for report in nodes),
            ]
        ),
        "ladder_position": position,
        "input_factor": factor,
    }


def _dropped(
    reports: Sequence[NodeMeasures], sources: Sequence[dict[str, Any]], name: str
) -> dict[str, int]:
    """Return the records that each edge dropped, by `stream` or `stream>query`."""
    result = _by_stream(sources, name)
    for report in reports:
        for stream, query, lost in getattr(report, name):
            result[f"{stream}>{query}"] = result.get(f"{stream}>{query}", 0) + lost
    return result


def _node_row(report: NodeMeasures, emitted_ms: int) -> dict[str, Any]:
    used = report.utilisation
    return {
        "node": report.node,
        "loads": report.records,
        "bytes": report.bytes,
        "emitted": report.emitted,
        # In seconds.
        "busy": report.busy_ms / 1000,
        "merged": report.merged_rows,
        "merge_busy": report.merge_ms / 1000,
        "cpu_ms": report.cpu_ms,
        "state_ms": round(report.state_us / 1000, 2),
        "tasks": report.tasks,
        "state_bytes": report.state_bytes,
        "late": report.late,
        "taken": report.taken,
        "waiting": report.waiting,
        "capacity": report.capacity,
        "utilisation": None if used is None else round(used, 4),
        "latency": latency([report], emitted_ms),
        "executor": report.executor,
    }


def newest_telemetry(client: "redis.Redis", cluster: str, count: int) -> list[dict[str, Any]]:
    """Return the newest telemetry rows that are readable, newest first."""
    # For the driver alone: executors have no pydantic.
    from controlplane.wire.foreign.telemetry import newest_rows  # noqa: PLC0415

    return newest_rows(client, cluster, count)


@dataclass(frozen=True, slots=True)
class LoadFeedback:
    """Records that wait at all nodes, and by node its waiting records and utilisation."""

    waiting: int = 0
    loads: NodeLoads = field(default_factory=dict)


def read_load_feedback(client: "redis.Redis", cluster: str) -> LoadFeedback:
    """Return the loads in the newest telemetry row; nothing before the first."""
    result = newest_telemetry(client, cluster, 1)
    if not result:
        return LoadFeedback()
    row = result[0]
    nodes = row.get("nodes", [])
    loads = {
        int(node["node"]): BacklogLoad(
            int(node.get("waiting") or 0), node.get("utilisation") or 0.0
        )
        for node in nodes
    }
    return LoadFeedback(int(row.get("waiting") or 0), loads)
