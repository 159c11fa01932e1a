"""Latencies of rungs and kept parts of queries, as the last days show them."""

from datetime import datetime, timedelta

import pytest

from controlplane.models import Cluster, Query, SheddingInterval
from controlplane.planners.shedding.history import record
from controlplane.planners.shedding.measured import MEASURED, kept_parts, rung_latencies
from controlplane.planners.shedding.report import ladder_report
from tests.support.cluster import telemetry
from tests.support.series import add_sample

pytestmark = pytest.mark.django_db(transaction=True)


def batch(cluster: Cluster, at: datetime, position: float, p95: float, results: int) -> None:
    row = telemetry(
        1, round(at.timestamp() * 1000), ladder_position=position, ladder_dropped={"1": 10},
        latency={"n": results, "p50": 1.0, "p95": p95, "p99": p95},
    )  # fmt: skip
    record(cluster, [row], [{"span_s": 1.0}])


def test_latencies_are_means_by_results(sf: Cluster, now: datetime) -> None:
    begin = now - timedelta(minutes=5)
    batch(sf, begin, 1.0, 300.0, 100)
    batch(sf, begin + timedelta(seconds=1), 1.0, 600.0, 300)
    # Without results a micro-batch has no latency.
    batch(sf, begin + timedelta(seconds=2), 1.0, 9000.0, 0)
    batch(sf, begin + timedelta(seconds=20), 2.0, 800.0, 50)
    interval = SheddingInterval.objects.get(rung=1)
    assert interval.timed == 400
    assert interval.p95_ms == pytest.approx(525.0)
    assert rung_latencies(sf, now) == {1: pytest.approx(525.0), 2: pytest.approx(800.0)}
    assert rung_latencies(sf, now + MEASURED) == {}


def test_rung_zero_has_the_periods_without_drops(sf: Cluster, now: datetime) -> None:
    for minutes, kept, p95 in ((1, 1.0, 100.0), (2, 1.0, 200.0), (3, 0.9, 900.0), (4, None, None)):
        t = now - timedelta(minutes=5 * minutes)
        add_sample(sf, t, {"kept": kept, "p95": p95}, 300)
    assert rung_latencies(sf, now) == {0: pytest.approx(150.0)}


def test_the_report_has_the_latency_of_its_rungs(busy: Cluster, now: datetime) -> None:
    batch(busy, now - timedelta(minutes=5), 1.0, 420.0, 10)
    rungs = ladder_report(busy).rungs
    assert [rung.p95_ms for rung in rungs[:3]] == [None, 420.0, None]


def test_a_query_keeps_what_its_edges_did_not_drop(busy: Cluster, now: datetime) -> None:
    """Of the records that arrived while it ran."""
    first, second = busy.queries.order_by("id")[:2]
    Query.objects.filter(cluster=busy).update(placed_at=now - timedelta(hours=1))
    stream = first.subscriptions.values_list("stream", flat=True)[0]
    parts = kept_parts(busy, [first.pk, second.pk], now)
    arrived = parts[first.pk].arrived
    assert arrived > 0
    assert parts[first.pk].kept == 1
    half = arrived // 2
    edges = [[stream, 0, half // 2], [stream, first.pk, half - half // 2], [stream, 10**6, 5]]
    SheddingInterval.objects.create(
        cluster=busy, rung=1, position=1.0, started_at=now - timedelta(minutes=9),
        ended_at=now - timedelta(minutes=8), by_edge=edges, by_stream=[[stream, half]],
    )  # fmt: skip
    # Before it was placed it lost nothing.
    SheddingInterval.objects.create(
        cluster=busy, rung=1, position=1.0, started_at=now - timedelta(hours=9),
        ended_at=now - timedelta(hours=8), by_edge=edges, by_stream=[[stream, half]],
    )  # fmt: skip
    later = now + timedelta(minutes=2)
    part = kept_parts(busy, [first.pk, second.pk], later)[first.pk]
    assert part.dropped == half
    assert part.kept == pytest.approx(1 - half / arrived, rel=0.05)
