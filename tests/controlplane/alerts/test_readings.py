"""Readings: means over a span against the limits of the policy, for a fleet in few queries."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from controlplane.access.roles import Actor
from controlplane.alerts.measures import AlertMeasure
from controlplane.alerts.readings import cluster_readings, lines_of, readings_of
from controlplane.models import Cluster, Node
from controlplane.planners.placement.loop import replication_reading
from controlplane.policies.grades import Grade
from controlplane.policies.store import update_policy
from controlplane.telemetry import series
from controlplane.telemetry.measures import present_end
from controlplane.telemetry.series import start_of
from controlplane.watch.observation import ClusterObservation
from tests.support.cluster import actor, placed_split
from tests.support.series import add_measures, add_sample
from tests.support.watching import measured, reachable

pytestmark = pytest.mark.django_db


def _cluster(slug: str = "sf") -> Cluster:
    cluster = Cluster.objects.create(slug=slug, name=slug, desired="running", state="running")
    Node.objects.bulk_create(
        Node(cluster=cluster, index=index, name=f"node {index}", capacity=200) for index in range(4)
    )
    return cluster


def _points(cluster: Cluster, start: datetime, count: int, **values: Any) -> None:
    begin = start_of(start, 10)
    for i in range(count):
        add_measures(cluster, begin + timedelta(seconds=10 * i), values, 10)


def test_a_reading_has_its_mean_its_trend_and_the_policys_limit() -> None:
    cluster, now = _cluster(), timezone.now()
    _points(cluster, now - timedelta(seconds=110), 4, latency_p95=1000.0, node_load=0.5, node=1)
    _points(
        cluster, now - timedelta(seconds=40), 4,
        latency_p95=3000.0, node_load=1.2, node=3, records_in=100.0, imbalance=0.1,
    )  # fmt: skip
    update_policy(actor("admin"), cluster, {"latency_ms": 2000, "watch_load": 1.25})
    readings = cluster_readings(cluster)
    latency, load = readings[AlertMeasure.LATENCY], readings[AlertMeasure.LOAD]
    assert (latency.value, latency.before, latency.limit) == (3000.0, 1000.0, 2000.0)
    assert (latency.grade, latency.trend, latency.kind.setting) == (Grade.BAD, 2.0, "latency_ms")
    assert (load.grade, load.node) == (Grade.WARN, 3)
    assert [reading.measure for reading in readings.exceeded] == [AlertMeasure.LATENCY]
    assert readings.grade == Grade.BAD


def test_batches_without_records_are_no_data() -> None:
    cluster, now = _cluster(), timezone.now()
    measured(cluster, now, p95=None, rf=None, imbalance=None, delivered=0.0, loads=[0.0] * 4)
    readings = cluster_readings(cluster)
    for measure in (
        AlertMeasure.LATENCY,
        AlertMeasure.IMBALANCE,
        AlertMeasure.REPLICATION,
        AlertMeasure.LOAD,
    ):
        assert (readings[measure].value, readings[measure].grade) == (None, Grade.UNKNOWN)
    assert readings[AlertMeasure.RECORDS].value == 100.0


def test_a_roll_up_writes_the_means_of_its_bucket_and_lines_have_gaps() -> None:
    cluster, now = _cluster(), timezone.now()
    measured(cluster, now - timedelta(seconds=160), loads=[50.0, 100.0, 150.0, 100.0], kept=0.8)
    series.roll_up(now)
    read = cluster_readings(cluster, end=now - timedelta(minutes=2))
    load = read[AlertMeasure.LOAD]
    assert (load.value, load.node, read[AlertMeasure.LATENCY].value) == (0.75, 2, 400.0)
    kept = [read[measure].value for measure in (AlertMeasure.RECORDS, AlertMeasure.KEPT)]
    assert kept == pytest.approx([100.0, 0.8])
    line = lines_of([cluster])[cluster.pk][AlertMeasure.LATENCY]
    assert len(line) == 30
    assert {value for value in line if value is not None} == {400.0}
    assert read[AlertMeasure.KEPT].grade == Grade.BAD
    assert read[AlertMeasure.AGE].value is None


def test_the_limit_of_replication_is_above_what_placement_reaches() -> None:
    cluster, now = _cluster(), timezone.now()
    measured(cluster, now, rf=1.8)
    reading = cluster_readings(cluster)[AlertMeasure.REPLICATION]
    assert (reading.limit, reading.reachable, reading.grade) == (None, None, Grade.GOOD)
    reachable(cluster, 1.4)
    reading = cluster_readings(cluster)[AlertMeasure.REPLICATION]
    assert (reading.reachable, reading.grade, reading.is_unreachable) == (1.4, Grade.BAD, False)
    assert reading.limit == pytest.approx(1.68)


def test_the_monitor_reads_the_value_of_the_tile_with_split_queries(
    operator: Actor, sf: Cluster
) -> None:
    """One number, of all queries, against one limit."""
    now = timezone.now()
    placed_split(operator, sf)
    measured(sf, now, read=100.0, delivered=222.0, rf=2.22, loads=[55.5] * 4)
    reachable(sf, 1.4)
    tile = cluster_readings(sf)[AlertMeasure.REPLICATION]
    reading = replication_reading(ClusterObservation(sf, now, now))
    assert reading.number == pytest.approx(tile.value) == pytest.approx(2.22)
    assert reading.limit == tile.limit


def test_a_past_period_has_the_limit_of_its_time() -> None:
    cluster, now = _cluster(), timezone.now()
    reachable(cluster, 1.4)
    _points(cluster, now - timedelta(minutes=10), 6, replication_factor=1.6, replication_limit=1.5)
    past = cluster_readings(cluster, end=now - timedelta(minutes=9))[AlertMeasure.REPLICATION]
    assert (past.limit, past.grade) == (1.5, Grade.BAD)
    assert cluster_readings(cluster)[AlertMeasure.REPLICATION].limit == pytest.approx(1.68)


def test_a_limit_that_no_placement_keeps_is_named() -> None:
    cluster, now = _cluster(), timezone.now()
    measured(cluster, now, loads=[200.0, 100.0, 100.0, 100.0])
    reachable(cluster, 1.0, imbalance=0.27)
    readings = cluster_readings(cluster)
    unmet = [row.measure for row in readings.readings if row.is_unreachable]
    assert unmet == [AlertMeasure.IMBALANCE]
    assert readings[AlertMeasure.IMBALANCE].reachable == 0.27


def test_a_placement_that_keeps_a_limit_shows_that_it_can_be_met() -> None:
    """What placement reaches was computed at other rates."""
    cluster, now = _cluster(), timezone.now()
    measured(cluster, now, loads=[80.0] * 4)
    reachable(cluster, 1.0, fullest=1.3)
    reading = cluster_readings(cluster)[AlertMeasure.LOAD]
    assert (reading.reachable, reading.is_unreachable) == (0.4, False)


@given(st.integers(0, 10**13).map(lambda ms: datetime.fromtimestamp(ms / 1000, UTC)))
def test_present_values_stand_for_ten_seconds(now: datetime) -> None:
    end = present_end(now)
    assert timedelta(seconds=2) <= now - end < timedelta(seconds=12)
    assert end.timestamp() % 10 == 0
    later = now + (end + timedelta(seconds=12) - now) / 2
    assert present_end(later) == end, "all parts of a page have the same window"


def test_readings_within_ten_seconds_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, end = _cluster(), present_end(timezone.now())
    measured(cluster, end, p95=400.0)
    add_sample(cluster, end + timedelta(seconds=1), {"p95": 9000.0, "delivered": 100.0})

    def value_after(seconds: int) -> float:
        moment = end + timedelta(seconds=seconds)
        monkeypatch.setattr("controlplane.alerts.readings.timezone.now", lambda: moment)
        return cluster_readings(cluster)[AlertMeasure.LATENCY].value or 0.0

    assert value_after(3) == value_after(11) == 400.0
    assert value_after(13) > 400.0, "the next window has the newer sample"


def test_silence_of_a_running_cluster_is_an_age_beyond_its_limit() -> None:
    cluster, now = _cluster(), timezone.now()
    measured(cluster, now - timedelta(minutes=2))
    assert cluster_readings(cluster)[AlertMeasure.AGE].grade == Grade.BAD
    Cluster.objects.filter(pk=cluster.pk).update(desired="stopped")
    cluster.refresh_from_db()
    assert cluster_readings(cluster)[AlertMeasure.AGE].grade == Grade.UNKNOWN


def test_a_fleet_takes_as_many_queries_as_a_cluster() -> None:
    now = timezone.now()
    clusters = [_cluster(f"c{i}") for i in range(6)]
    for cluster in clusters:
        _points(cluster, now - timedelta(minutes=2), 10, records_in=10.0, node_load=0.1, node=0)
    rows = list(Cluster.objects.select_related("health"))
    counts = []
    for some in (rows[:1], rows):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert all(own[AlertMeasure.RECORDS].value for own in readings_of(some).values())
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 7


def test_the_first_minute_of_measures_has_values_and_no_grade() -> None:
    cluster, now = _cluster(), timezone.now()
    update_policy(actor("admin"), cluster, {"latency_ms": 2000})
    add_measures(cluster, now - timedelta(seconds=30), {"latency_p95": 90_000.0}, 10)
    latency = cluster_readings(cluster, end=now)[AlertMeasure.LATENCY]
    assert (latency.value, latency.grade) == (90_000.0, Grade.UNKNOWN)
    assert cluster_readings(cluster, end=now).grade == Grade.UNKNOWN
    add_measures(cluster, now - timedelta(seconds=65), {"latency_p95": 90_000.0}, 10)
    assert cluster_readings(cluster, end=now)[AlertMeasure.LATENCY].grade == Grade.UNKNOWN
    add_measures(cluster, now - timedelta(seconds=70), {"latency_p95": 90_000.0}, 10)
    assert cluster_readings(cluster, end=now)[AlertMeasure.LATENCY].grade == Grade.BAD
