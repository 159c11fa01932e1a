"""Skew of keys over time: written from samples, rolled up, pruned, and read."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Node, Query, SeriesPeriod
from controlplane.planners.partitioning import skew_history
from controlplane.planners.partitioning.skew_history import (
    history,
    recent_skews,
    record,
    record_all,
)
from controlplane.telemetry import series
from controlplane.telemetry.grid import Grid
from tests.support.cluster import placed_split
from tests.support.key_samples import EVEN, HOT, sampled
from tests.support.series import add_skews, even_times, stored_times

pytestmark = pytest.mark.django_db(transaction=True)
# The end of a period of ten seconds, five minutes and an hour.
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
SERIES = ("key_top_share", "key_top10_share", "key_imbalance", "key_records")


@pytest.fixture
def query(operator: Actor, sf: Cluster) -> Query:
    """A query with a key grouping: 8 tasks, two on each of 4 nodes of 500 records/s."""
    Cluster.objects.filter(pk=sf.pk).update(desired="running")
    return placed_split(operator, sf, "q", "key")


def skews(query: Query, count: int, seconds: int = 10, end: datetime = NOW) -> None:
    """Store the periods before `end`; the imbalance grows with time."""
    for place, t in enumerate(even_times(end, seconds, count)):
        grouping = "key" if place < count / 2 else "partial_key"
        add_skews(query, [(t, place / 100)], grouping=grouping, seconds=seconds)


def stored(cluster: Cluster, seconds: int = 10) -> Grid:
    """Return the stored skew of the only query."""
    return series.read(cluster, SERIES, NOW - timedelta(days=1), NOW + timedelta(days=1), seconds)


def imbalances(cluster: Cluster, seconds: int = 10) -> list[float]:
    values: list[float] = stored(cluster, seconds)["key_imbalance"][:, 0].tolist()
    return values


@pytest.mark.both_databases
def test_the_last_complete_periods_are_written_once(sf: Cluster, query: Query) -> None:
    sampled(query, NOW + timedelta(seconds=4), seconds=30)
    assert record(sf, NOW + timedelta(seconds=5)) == 2
    assert record(sf, NOW + timedelta(seconds=9)) == 0
    assert record(sf, NOW + timedelta(seconds=11)) == 1
    assert stored_times(sf, "query", 10) == [NOW + timedelta(seconds=s) for s in (-20, -10, 0)]
    rows = stored(sf)
    assert rows["key_top_share"][1, 0] == pytest.approx(0.4)
    assert rows["key_top10_share"][1, 0] == pytest.approx(0.4 + 9 * 0.002)
    assert rows["key_records"][1, 0] == pytest.approx(1_000, rel=0.01)
    assert history(query, NOW - timedelta(seconds=10), NOW)[0].grouping == "key"


def test_imbalance_is_the_fullest_task_above_the_mean(sf: Cluster, query: Query) -> None:
    """Two tasks share a node of 500 records/s; the others have 1,000 records/s evenly."""
    sampled(query, NOW, EVEN, shares=[0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2])
    record(sf, NOW + timedelta(seconds=1))
    assert imbalances(sf)[0] == pytest.approx(0.8 - 0.5)
    Node.objects.filter(cluster=sf).update(capacity=1_000)
    record(sf, NOW + timedelta(seconds=11))
    assert imbalances(sf)[-1] == pytest.approx(0.4 - 0.25)


def test_split_nodes_are_added_up(sf: Cluster, query: Query) -> None:
    sampled(query, NOW, splits=2)
    record(sf, NOW + timedelta(seconds=1))
    assert stored(sf)["key_records"][0, 0] == pytest.approx(1_000, rel=0.01)


def test_an_error_in_one_cluster_does_not_affect_the_others(
    sf: Cluster, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cluster.objects.create(slug="a", name="A", slots=1, splits=1, desired="running")
    sampled(query, NOW)
    original = skew_history.record

    def failing(cluster: Cluster, now: datetime) -> int:
        if cluster.slug == "a":
            raise ValueError("no")
        return original(cluster, now)

    monkeypatch.setattr(skew_history, "record", failing)
    assert record_all(NOW + timedelta(seconds=1)) == 2


def test_stopped_clusters_and_queries_without_samples_have_no_rows(
    sf: Cluster, query: Query
) -> None:
    assert record_all(NOW) == 0
    sampled(query, NOW)
    Cluster.objects.filter(pk=sf.pk).update(desired="stopped")
    assert record_all(NOW + timedelta(seconds=1)) == 0


def test_samples_of_old_batches_are_not_read(sf: Cluster, query: Query) -> None:
    """A batch takes a second at least, so the last 100 batches have all of the last 100 s."""
    sampled(query, NOW)
    newest = round(NOW.timestamp())
    Cluster.objects.filter(pk=sf.pk).update(last_batch=newest + 100)
    assert record(Cluster.objects.get(pk=sf.pk), NOW + timedelta(seconds=1)) == 0
    Cluster.objects.filter(pk=sf.pk).update(last_batch=newest)
    assert record(Cluster.objects.get(pk=sf.pk), NOW + timedelta(seconds=1)) == 2


def test_samples_of_another_number_of_tasks_have_no_row(sf: Cluster, query: Query) -> None:
    sampled(query, NOW, tasks=3)
    assert record(sf, NOW + timedelta(seconds=1)) == 0


@pytest.mark.both_databases
def test_longer_periods_are_means(sf: Cluster, query: Query) -> None:
    skews(query, 90)
    assert series.roll_up(NOW + timedelta(minutes=1)) == 4
    assert series.roll_up(NOW + timedelta(minutes=1)) == 0
    assert imbalances(sf, 300) == pytest.approx([0.145, 0.445, 0.745])
    assert stored_times(sf, "query", 3600) == [NOW - timedelta(hours=1)]
    assert imbalances(sf, 3600) == pytest.approx([0.445])
    Query.objects.filter(pk=query.pk).update(placed_at=NOW - timedelta(days=2))
    query.refresh_from_db()
    points = history(query, NOW - timedelta(hours=1), NOW, now=NOW + timedelta(days=2))
    assert [point.grouping for point in points] == ["key", "partial_key", "partial_key"]


def test_a_history_has_few_points_of_the_finest_periods(query: Query) -> None:
    skews(query, 90)
    points = history(query, NOW - timedelta(minutes=15), NOW)
    assert len(points) == 90
    assert (points[0].time, points[0].grouping) == (NOW - timedelta(minutes=15), "key")
    coarse = history(query, NOW - timedelta(minutes=15), NOW, points=9)
    assert [point.imbalance for point in coarse][:2] == pytest.approx([0.045, 0.145])
    assert coarse[-1].grouping == "partial_key"
    series.roll_up(NOW + timedelta(minutes=1))
    assert len(history(query, NOW - timedelta(days=2), NOW)) == 2
    assert len(history(query, NOW - timedelta(days=20), NOW)) == 1
    assert history(query, NOW, NOW) == []


@pytest.mark.both_databases
def test_recent_skews_are_of_queries_with_a_key_grouping(
    operator: Actor, sf: Cluster, query: Query
) -> None:
    fixed = placed_split(operator, sf, "fixed")
    skews(query, 6)
    skews(fixed, 6)
    (skew,) = recent_skews(sf, NOW - timedelta(minutes=1))
    assert (skew.query, skew.name) == (query.pk, "q")
    assert skew.imbalance == pytest.approx(0.025)
    assert recent_skews(sf, NOW) == []
    since, other = NOW - timedelta(minutes=1), placed_split(operator, sf, "other", "key")
    assert recent_skews(sf, since, [query.pk, other.pk]) == [skew]
    assert recent_skews(sf, since, [other.pk, fixed.pk]) == []


def test_hot_keys_are_seen(sf: Cluster, query: Query) -> None:
    for keys, least, most in ((HOT, 0.3, 1.5), (EVEN, 0.0, 0.2)):
        SeriesPeriod.objects.all().delete()
        sampled(query, NOW + timedelta(seconds=100 * (keys is EVEN)), keys)
        record(sf, NOW + timedelta(seconds=100 * (keys is EVEN) + 1))
        assert least <= imbalances(sf)[0] <= most
