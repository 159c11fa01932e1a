"""Counts by event time in the database: from telemetry rows, and how long they are kept."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.background import ingestion
from controlplane.models import Cluster, CountedRange, EdgePeriod, Query, Stream
from controlplane.results import edge_periods
from controlplane.results.edge_periods import Counts, counts_between, ranges_of
from controlplane.wire.drop_counts import OTHERS, DropCount
from controlplane.wire.routing.drop_rules import INPUT
from tests.support.cluster import placed, telemetry

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]
INFINITY = float("inf")


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def stream(sf: Cluster) -> Stream:
    """Return a stream whose records are counted."""
    return sf.streams.get(name="s0")


def ingest(cluster: Cluster, now: datetime, *rows: dict[str, Any]) -> None:
    """Store a row per second up to now, all in one step."""
    first_ms = round(now.timestamp() * 1000) - 1_000 * len(rows)
    telemetry_rows = [telemetry(n, first_ms + 1000 * n, **row) for n, row in enumerate(rows)]
    ingestion.record(cluster, telemetry_rows)


def batch(stream: Stream, start_s: int, arrived: int, lost: int = 0, **more: int) -> dict[str, Any]:
    """Return what a batch reports: of the input edge, and of edges to queries by `q<id>`."""
    counts = [DropCount(stream.pk, INPUT, 0, 0, start_s, 10, arrived, lost)]
    for name, records in more.items():
        query = int(name.removeprefix("q"))
        counts.append(DropCount(stream.pk, query, 0, 0, start_s, 10, 0, records))
    return {"streams": {str(stream.pk): arrived}, "drop_counts": [list(count) for count in counts]}


def test_counts_of_batches_add_up(sf: Cluster, stream: Stream, now: datetime) -> None:
    """In one step of the relay and in several; other edges and periods are separate rows."""
    ingest(sf, now, batch(stream, 0, 5, 1, q7=2), batch(stream, 0, 6, 2, q7=1))
    ingest(sf, now, batch(stream, 0, 4, 3), batch(stream, 10, 9))
    rows = EdgePeriod.objects.order_by("query", "start_s")
    assert [(row.query, row.start_s, row.arrived, row.dropped) for row in rows] == [
        (INPUT, 0, 15, 6), (INPUT, 10, 9, 0), (7, 0, 0, 3),
    ]  # fmt: skip


def test_rows_without_counts_store_nothing(sf: Cluster, now: datetime) -> None:
    ingest(sf, now, {"drop_counts": []}, {})
    assert not EdgePeriod.objects.exists()
    assert not CountedRange.objects.exists()


def test_a_stream_of_another_cluster_or_none_is_ignored(
    sf: Cluster, stream: Stream, now: datetime
) -> None:
    gone = batch(stream, 0, 5, 1)
    other = Cluster.objects.create(slug="ny", name="NY", slots=1, splits=1)
    ingest(other, now, gone)
    stream.delete()
    ingest(sf, now, gone)
    assert not EdgePeriod.objects.exists()


def test_a_range_lasts_as_long_as_the_stream_is_counted(
    sf: Cluster, stream: Stream, now: datetime
) -> None:
    """Batches that read nothing of the stream do not end it, one that does not count it does."""
    read = {"streams": {str(stream.pk): 5}}
    ingest(sf, now, batch(stream, 100, 50), {}, batch(stream, 120, 50))
    assert ranges_of([stream.pk]) == {stream.pk: ([(100, INFINITY)], 130)}
    ingest(sf, now, read, read, batch(stream, 200, 50))
    ((first, second), newest) = ranges_of([stream.pk])[stream.pk]
    assert (first, second, newest) == ((100, 130), (200, INFINITY), 210)


def test_late_records_do_not_begin_a_range(sf: Cluster, stream: Stream, now: datetime) -> None:
    report = batch(stream, 500, 100)
    late = list(DropCount(stream.pk, INPUT, 0, 0, 300, 10, 2, 0))
    ingest(sf, now, report | {"drop_counts": [*report["drop_counts"], late]})
    assert ranges_of([stream.pk])[stream.pk].ranges == [(500, INFINITY)]


def test_the_counts_of_a_query_are_those_of_its_path(
    sf: Cluster, stream: Stream, now: datetime
) -> None:
    ingest(sf, now, batch(stream, 100, 5, q7=1, q8=1), batch(stream, 150, 5, 1))
    ingest(sf, now, {"drop_counts": [list(DropCount(stream.pk, OTHERS, 0, 0, 100, 10, 0, 3))]})
    counts = counts_between([stream.pk], 7, 90, 110)
    assert sorted(counts or ()) == [
        Counts(stream.pk, OTHERS, 0, 0, 100, 110, 0, 3),
        Counts(stream.pk, INPUT, 0, 0, 100, 110, 5, 0),
        Counts(stream.pk, 7, 0, 0, 100, 110, 0, 1),
    ]
    assert counts_between([stream.pk], 7, 200, 300) == []


def test_too_many_counts_are_not_read(
    sf: Cluster, stream: Stream, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_periods, "MOST_READ", 2)
    ingest(sf, now, *(batch(stream, 10 * n, 5, 1) for n in range(3)))
    assert counts_between([stream.pk], 7, 0, 100) is None
    assert len(counts_between([stream.pk], 7, 0, 20) or ()) == 2


def test_periods_are_kept_as_long_as_windows(
    operator: Actor, sf: Cluster, stream: Stream, now: datetime
) -> None:
    """A live query keeps them for its retention, an ended one for as long again."""
    (query,) = placed(operator, sf, {"q": ["s0"]})
    Query.objects.filter(pk=query.pk).update(retention_s=86_400)
    ingest(sf, now, batch(stream, 0, 5, 1), batch(stream, 100, 5), {"streams": {stream.pk: 1}})
    days = timedelta(days=1)
    assert edge_periods.prune(now + 2.5 * days) == 0
    assert edge_periods.prune(now + 3.5 * days) == 3, "two periods and their range"
    assert not EdgePeriod.objects.exists()
    assert not CountedRange.objects.exists()


def test_periods_far_from_drops_are_deleted_earlier(
    operator: Actor, sf: Cluster, stream: Stream, now: datetime
) -> None:
    hour = 3_600
    placed(operator, sf, {"q": ["s0"]})
    ingest(sf, now, *(batch(stream, n * hour, 5, int(n == 10)) for n in range(20)))
    edge_periods.prune(now + timedelta(hours=23))
    assert EdgePeriod.objects.count() == 20
    edge_periods.prune(now + timedelta(hours=25))
    kept = EdgePeriod.objects.order_by("start_s").values_list("start_s", flat=True)
    assert [start // hour for start in kept] == list(range(4, 17))


def test_periods_without_drops_nearby_are_merged(
    operator: Actor, sf: Cluster, stream: Stream, now: datetime
) -> None:
    """Into ten minutes, with all their records; again if more follow."""
    placed(operator, sf, {"q": ["s0"]})
    ingest(sf, now, *(batch(stream, 10 * n, 5, int(n == 200)) for n in range(300)))
    hours = timedelta(hours=2)
    edge_periods.prune(now + timedelta(minutes=50))
    assert EdgePeriod.objects.count() == 300
    edge_periods.prune(now + hours)
    ingest(sf, now, batch(stream, 10, 7))
    edge_periods.prune(now + hours)
    rows = EdgePeriod.objects.filter(seconds=600).order_by("start_s")
    merged = [(row.start_s, row.arrived, row.dropped) for row in rows]
    assert merged == [(0, 307, 0), (600, 300, 0), (1_200, 100, 0), (2_400, 195, 0)]
    fine = EdgePeriod.objects.filter(seconds=10)
    assert fine.count() == 121, "those within ten minutes of the drop"
    assert sum(row.arrived for row in EdgePeriod.objects.all()) == 1_507


def test_what_is_beyond_the_bound_becomes_unknown(
    sf: Cluster, stream: Stream, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no window of that day counts as complete."""
    monkeypatch.setattr(edge_periods, "MOST", 3)
    for number in range(6):
        ingest(sf, now, batch(stream, 86_400 * (number // 3) + 10 * number, 5, 1))
    edge_periods.prune(now)
    rows = EdgePeriod.objects.order_by("query", "start_s")
    assert [(row.query, row.start_s, row.seconds, row.dropped) for row in rows] == [
        (OTHERS, 0, 86_400, 3), (INPUT, 86_430, 10, 1), (INPUT, 86_440, 10, 1),
        (INPUT, 86_450, 10, 1),
    ]  # fmt: skip
