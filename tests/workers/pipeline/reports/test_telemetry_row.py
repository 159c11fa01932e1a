"""Telemetry is put together from what nodes and split nodes report."""

from dataclasses import replace

from workers.pipeline.exchange.output import NodeMeasures
from workers.pipeline.reports.telemetry_row import latency, telemetry_row


def report(node: int, records: int, arrivals: list[list[int]]) -> NodeMeasures:
    return NodeMeasures(
        node=node, batch=3, version=7, records=records, bytes=100, busy_ms=1.5, tasks=2,
        state_bytes=10, late=node, event_ms=9 + node, arrivals=arrivals,
        sources=[{"split": 0, "streams": {"1": 5, "2": 1}, "bytes": 50, "read": 5,
                  "newest": {"1": 700, "2": 650},
                  "start": "0-0", "end": "900-0"}] if node == 0 else [],
    )  # fmt: skip


def test_replication_is_delivered_over_read() -> None:
    """Five records of a read stream went to two nodes: factor 2; one record had no reader."""
    row = telemetry_row([report(1, 5, []), report(0, 5, [])], 1000)
    assert (row["in"], row["read"], row["delivered"]) == (6, 5, 10)
    assert [node["node"] for node in row["nodes"]] == [0, 1]
    assert (row["late"], row["event_ms"], row["end"]) == (1, 10, "900-0")
    assert row["newest"] == {"1": 700, "2": 650}


def test_latency_is_weighted_by_records() -> None:
    """Nine records waited 100 ms, one waited 600 ms."""
    found = latency([report(0, 9, [[900, 9]]), report(1, 1, [[400, 1]])], 1000)
    assert found == {"n": 10, "mean": 150.0, "p50": 100, "p95": 600, "p99": 600}
    assert latency([report(0, 0, [])], 1000) is None
    assert latency([report(0, 0, [[900, 0]])], 1000) is None


def test_records_that_wait_have_their_age_as_latency() -> None:
    """A node that processes nothing has a latency; newer records that wait lower none."""
    lost = replace(report(1, 5, []), waiting=20, waiting_since=[[400, 15], [900, 5]])
    found = latency([lost], 1000)
    assert found == {"n": 0, "mean": 475.0, "p50": 600, "p95": 600, "p99": 600}
    busy = report(0, 80, [[900, 80]])
    found = latency([busy, lost], 1000)
    assert found == {"n": 80, "mean": 100.0, "p50": 100, "p95": 600, "p99": 600}
    slow = replace(report(0, 10, [[400, 10]]), waiting=90, waiting_since=[[950, 90]])
    found = latency([slow], 1000)
    assert found == {"n": 10, "mean": 600.0, "p50": 600, "p95": 600, "p99": 600}
    row = telemetry_row([busy, lost], 1000)
    assert [node["latency"]["p95"] for node in row["nodes"]] == [100, 600]
