"""Counts of drops by event time in the database: from telemetry rows, and their retention."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.background import ingestion
from controlplane.models import Cluster, EdgePeriod, Query, Stream
from controlplane.results import edge_periods
from controlplane.results.edge_periods import drops_between
from controlplane.wire.drop_counts import OTHERS, DropCount
from controlplane.wire.routing.drop_rules import INPUT
from tests.support.cluster import placed, telemetry

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def stream(sf: Cluster) -> Stream:
    """Return a stream of which records are dropped."""
    return sf.streams.get(name="s0")


def ingest(cluster: Cluster, now: datetime, *rows: dict[str, Any]) -> None:
    """Store a row per second up to now, all in one step."""
    first_ms = round(now.timestamp() * 1000) - 1_000 * len(rows)
    telemetry_rows = [telemetry(n, first_ms + 1000 * n, **row) for n, row in enumerate(rows)]
    ingestion.record(cluster, telemetry_rows)


def batch(stream: Stream, start_s: int, lost: int = 0, **more: int) -> dict[str, Any]:
    """Return what a batch reports: of the input edge, and of edges to queries by `q<id>`."""
    counts = [DropCount(stream.pk, INPUT, 0, 0, start_s, 10, lost)] if lost else []
    for name, records in more.items():
        query = int(name.removeprefix("q"))
        counts.append(DropCount(stream.pk, query, 0, 0, start_s, 10, records))
    return {"drop_counts": [list(count) for count in counts]}


def test_counts_of_batches_add_up(sf: Cluster, stream: Stream, now: datetime) -> None:
    """In one step of the relay and in several; other edges and periods are separate rows."""
    ingest(sf, now, batch(stream, 0, 1, q7=2), batch(stream, 0, 2, q7=1))
    ingest(sf, now, batch(stream, 0, 3), batch(stream, 10, 9))
    rows = EdgePeriod.objects.order_by("query", "start_s")
    assert [(row.query, row.start_s, row.dropped) for row in rows] == [
        (INPUT, 0, 6), (INPUT, 10, 9), (7, 0, 3),
    ]  # fmt: skip


def test_rows_without_drops_store_nothing(sf: Cluster, now: datetime) -> None:
    ingest(sf, now, {"drop_counts": []}, {})
    assert not EdgePeriod.objects.exists()


def test_a_stream_of_another_cluster_or_none_is_ignored(
    sf: Cluster, stream: Stream, now: datetime
) -> None:
    gone = batch(stream, 0, 1)
    other = Cluster.objects.create(slug="ny", name="NY", slots=1, splits=1)
    ingest(other, now, gone)
    stream.delete()
    ingest(sf, now, gone)
    assert not EdgePeriod.objects.exists()


def test_the_drops_of_a_query_are_those_of_its_path(
    sf: Cluster, stream: Stream, now: datetime
) -> None:
    ingest(sf, now, batch(stream, 100, q7=1, q8=1), batch(stream, 150, 1))
    ingest(sf, now, {"drop_counts": [list(DropCount(stream.pk, OTHERS, 0, 0, 100, 10, 3))]})
    assert sorted(drops_between([stream.pk], 7, 90, 110)) == [
        DropCount(stream.pk, OTHERS, 0, 0, 100, 10, 3),
        DropCount(stream.pk, 7, 0, 0, 100, 10, 1),
    ]
    assert drops_between([stream.pk], 7, 200, 300) == []


def test_periods_are_kept_as_long_as_windows(
    operator: Actor, sf: Cluster, stream: Stream, now: datetime
) -> None:
    """A live query keeps them for its retention, an ended one for as long again."""
    (query,) = placed(operator, sf, {"q": ["s0"]})
    Query.objects.filter(pk=query.pk).update(retention_s=86_400)
    ingest(sf, now, batch(stream, 0, 1), batch(stream, 100, 5))
    days = timedelta(days=1)
    assert edge_periods.prune(now + 2.5 * days) == 0
    assert edge_periods.prune(now + 3.5 * days) == 2
    assert not EdgePeriod.objects.exists()


def test_what_is_beyond_the_bound_becomes_unknown(
    sf: Cluster, stream: Stream, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no window of that day counts as complete."""
    monkeypatch.setattr(edge_periods, "MOST", 3)
    for number in range(6):
        ingest(sf, now, batch(stream, 86_400 * (number // 3) + 10 * number, 1))
    edge_periods.prune(now)
    rows = EdgePeriod.objects.order_by("query", "start_s")
    assert [(row.query, row.start_s, row.seconds, row.dropped) for row in rows] == [
        (OTHERS, 0, 86_400, 3), (INPUT, 86_430, 10, 1), (INPUT, 86_440, 10, 1),
        (INPUT, 86_450, 10, 1),
    ]  # fmt: skip
