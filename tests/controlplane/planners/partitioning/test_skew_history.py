"""Skew of keys over time: written from samples, rolled up, pruned, and read."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster, KeySkew, Node, Query
from controlplane.planners.partitioning import skew_history
from controlplane.planners.partitioning.skew_history import (
    history,
    prune,
    recent_skews,
    record,
    record_all,
    roll_up,
)
from tests.support.cluster import placed_split
from tests.support.key_samples import EVEN, HOT, sampled

pytestmark = pytest.mark.django_db(transaction=True)
# The end of a period of ten seconds, five minutes and an hour.
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.fixture
def query(operator: Actor, sf: Cluster) -> Query:
    """A query with a key grouping: 8 tasks, two on each of 4 nodes of 500 records/s."""
    Cluster.objects.filter(pk=sf.pk).update(desired="running")
    return placed_split(operator, sf, "q", "key")


def skews(query: Query, count: int, seconds: int = 10, end: datetime = NOW) -> None:
    """Store the periods before `end`; the imbalance grows with time."""
    KeySkew.objects.bulk_create(
        KeySkew(
            query=query, seconds=seconds, t=end - timedelta(seconds=seconds * (count - place)),
            top_share=0.5, top10_share=0.6, imbalance=place / 100, pairs=40, records_per_s=9.0,
            grouping="key" if place < count / 2 else "partial_key",
        )
        for place in range(count)
    )  # fmt: skip


@pytest.mark.both_databases
def test_the_last_complete_periods_are_written_once(sf: Cluster, query: Query) -> None:
    sampled(query, NOW + timedelta(seconds=4), seconds=30)
    assert record(sf, NOW + timedelta(seconds=5)) == 2
    assert record(sf, NOW + timedelta(seconds=9)) == 0
    assert record(sf, NOW + timedelta(seconds=11)) == 1
    rows = list(KeySkew.objects.order_by("t"))
    assert [row.t for row in rows] == [NOW + timedelta(seconds=s) for s in (-20, -10, 0)]
    row = rows[1]
    assert row.top_share == pytest.approx(0.4)
    assert row.top10_share == pytest.approx(0.4 + 9 * 0.002)
    assert row.records_per_s == pytest.approx(1_000, rel=0.01)
    assert (row.pairs, row.grouping) == (32, "key")


def test_imbalance_is_the_fullest_task_above_the_mean(sf: Cluster, query: Query) -> None:
    """Two tasks share a node of 500 records/s; the others have 1,000 records/s evenly."""
    sampled(query, NOW, EVEN, shares=[0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2])
    record(sf, NOW + timedelta(seconds=1))
    assert KeySkew.objects.earliest("t").imbalance == pytest.approx(0.8 - 0.5)
    Node.objects.filter(cluster=sf).update(capacity=1_000)
    record(sf, NOW + timedelta(seconds=11))
    assert KeySkew.objects.latest("t").imbalance == pytest.approx(0.4 - 0.25)


def test_split_nodes_are_added_up(sf: Cluster, query: Query) -> None:
    sampled(query, NOW, splits=2)
    record(sf, NOW + timedelta(seconds=1))
    assert KeySkew.objects.earliest("t").records_per_s == pytest.approx(1_000, rel=0.01)


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
def test_longer_periods_are_means(query: Query) -> None:
    skews(query, 90)
    assert roll_up(NOW + timedelta(minutes=1)) == 4
    assert roll_up(NOW + timedelta(minutes=1)) == 0
    rows = list(KeySkew.objects.filter(seconds=300).order_by("t"))
    assert [row.imbalance for row in rows] == pytest.approx([0.145, 0.445, 0.745])
    assert [row.grouping for row in rows] == ["key", "partial_key", "partial_key"]
    hour = KeySkew.objects.get(seconds=3600)
    assert (hour.t, hour.pairs) == (NOW - timedelta(hours=1), 40)
    assert hour.imbalance == pytest.approx(0.445)


def test_an_open_period_is_not_written(query: Query) -> None:
    skews(query, 12, end=NOW + timedelta(minutes=2))
    assert roll_up(NOW + timedelta(minutes=2)) == 0


def test_old_periods_are_deleted(query: Query) -> None:
    for seconds, kept in skew_history.KEPT.items():
        skews(query, 2, seconds, end=NOW - kept + timedelta(seconds=seconds))
    assert prune(NOW) == 3
    assert sorted(KeySkew.objects.values_list("seconds", flat=True)) == [10, 300, 3600]


def test_a_history_has_few_points_of_the_finest_periods(query: Query) -> None:
    skews(query, 90)
    points = history(query, NOW - timedelta(minutes=15), NOW)
    assert len(points) == 90
    assert (points[0].time, points[0].grouping) == (NOW - timedelta(minutes=15), "key")
    coarse = history(query, NOW - timedelta(minutes=15), NOW, points=9)
    assert [point.imbalance for point in coarse][:2] == pytest.approx([0.045, 0.145])
    assert coarse[-1].grouping == "partial_key"
    roll_up(NOW + timedelta(minutes=1))
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


def test_hot_keys_are_seen(sf: Cluster, query: Query) -> None:
    for keys, least, most in ((HOT, 0.3, 1.5), (EVEN, 0.0, 0.2)):
        KeySkew.objects.all().delete()
        sampled(query, NOW + timedelta(seconds=100 * (keys is EVEN)), keys)
        record(sf, NOW + timedelta(seconds=100 * (keys is EVEN) + 1))
        assert least <= KeySkew.objects.earliest("t").imbalance <= most
