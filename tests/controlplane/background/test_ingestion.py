"""Samples say what was measured, roll-ups as well, and nothing is kept beyond its time."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.background import ingestion
from controlplane.background.ingestion import RelayPositions
from controlplane.background.retention import history as retention
from controlplane.models import Cluster, ClusterHealth, Query, RoutingVersion, Stream
from controlplane.telemetry import series
from controlplane.telemetry.samples import PreviousBatch, sample_of
from controlplane.telemetry.series import MAX_ROWS, fitting_seconds
from controlplane.telemetry.time_series import samples, since
from controlplane.topology import placement, queries
from tests.support.cluster import placed, telemetry
from tests.support.series import add_arrivals, add_sample, all_samples, even_times, stored_times

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)


def test_rates_count_since_the_previous_batch() -> None:
    """100 records in two seconds are 50 a second."""
    sample = sample_of(telemetry(2, 5000), PreviousBatch(3000, 1000), [500.0, 500.0, 500.0])
    assert sample["in"] == 50
    assert sample["rf"] == 1.5
    assert sample["loads"] == [40, 20, 0]
    assert sample["imbalance"] == pytest.approx(40 / 500 - 60 / 1500)
    assert sample["busy"] == pytest.approx([0.025, 0.025, 0.0])
    assert sample["p99"] == 502


def test_a_batch_without_input_has_no_ratio_and_no_latency() -> None:
    """Nothing over nothing is not a number."""
    row = telemetry(2, 5000, read=0, delivered=0, latency=None, nodes=[])
    sample = sample_of(row, PreviousBatch(None, 1000), [500.0])
    assert (sample["rf"], sample["p99"], sample["loads"]) == (None, None, [0.0])


def test_a_roll_up_weighs_means_by_time_and_takes_the_last_version(sf: Cluster) -> None:
    """Documented rule: a value over a window is the same from batches and from roll-ups."""
    rows = [telemetry(i, NOON_MS + 1000 * i, version=i) for i in (1, 2, 6, 12)]
    samples_ = ingestion.record(sf, rows)
    series.roll_up(NOON + timedelta(seconds=12))
    (merged,) = samples(sf, NOON, NOON + timedelta(hours=1), 10)
    spans = [sample["span_s"] for sample in samples_[:3]]
    for name in ("in", "p95", "p99"):
        mean = sum(s[name] * span for s, span in zip(samples_, spans, strict=False)) / sum(spans)
        assert merged[name] == pytest.approx(mean), name
    assert (merged["t"], merged["version"], merged["span_s"]) == (NOON_MS, 6, sum(spans))
    assert merged["loads"][:2] == pytest.approx([80 * 3 / sum(spans), 40 * 3 / sum(spans)])


def record(cluster: Cluster, first: int, count: int, version: int = 1) -> None:
    rows = [telemetry(i, NOON_MS + 1000 * i, version) for i in range(first, first + count)]
    ingestion.record(cluster, rows, RelayPositions(telemetry=f"{first + count - 1}-0"))


def test_recording_stores_samples_position_and_acknowledgement(sf: Cluster) -> None:
    """All in one transaction, so that a restart of the relay finds where it was."""
    record(sf, 1, 3)
    sf.refresh_from_db()
    assert len(all_samples(sf)) == 3
    assert (sf.telemetry_position, sf.last_batch, sf.applied_version) == ("3-0", 3, 1)
    assert RoutingVersion.objects.get(version=1).applied_at is not None


def test_an_older_version_does_not_take_the_acknowledgement_back(sf: Cluster) -> None:
    """A replayed batch may name an older version."""
    record(sf, 1, 1, version=1)
    record(sf, 2, 1, version=0)
    sf.refresh_from_db()
    assert sf.applied_version == 1


def test_recording_the_same_rows_twice_counts_once(sf: Cluster) -> None:
    """The relay reads again what it could not store."""
    record(sf, 1, 3)
    record(sf, 1, 3)
    assert len(all_samples(sf)) == 3


def test_roll_ups_are_made_of_complete_buckets_only(sf: Cluster) -> None:
    """Samples at 0..24 s: two buckets of ten seconds are complete, the third is not."""
    record(sf, 0, 25)
    series.roll_up(NOON + timedelta(seconds=25))
    assert series.roll_up(NOON + timedelta(seconds=26)) == 0
    assert stored_times(sf, "node", 10) == [NOON, NOON + timedelta(seconds=10)]


def test_samples_that_come_late_are_rolled_up_when_they_come(sf: Cluster) -> None:
    """A relay that was away an hour fills the gap: its buckets are not forgotten."""
    record(sf, 0, 12)
    late = NOON + timedelta(hours=1)
    series.roll_up(NOON + timedelta(seconds=12))
    assert stored_times(sf, "cluster", 10) == [NOON]
    record(sf, 12, 30)
    series.roll_up(late)
    assert len(stored_times(sf, "cluster", 10)) == 5


def test_samples_are_pruned_by_resolution(sf: Cluster) -> None:
    """An hour of raw samples, a day of ten seconds, a month of minutes."""
    for seconds in (1, 10, 60):
        for age in (timedelta(minutes=50), timedelta(hours=20), timedelta(days=29)):
            add_sample(sf, NOON - age, {"in": 1.0}, seconds)
    series.prune(NOON)
    assert [len(stored_times(sf, "cluster", s)) for s in (1, 10, 60)] == [1, 2, 3]


def test_stream_rates_follow_and_decay(sf: Cluster) -> None:
    """A stream that falls silent loses its measured rate."""
    stream = Stream.objects.get(name="s0")
    # Prepared rows are as old as the first test that needed them.
    Stream.objects.filter(pk=stream.pk).update(created_at=timezone.now())
    ingestion.update_rates(sf, {stream.pk: 50}, 5.0)
    stream.refresh_from_db()
    assert stream.rate == 10
    ingestion.update_rates(sf, {}, ingestion.RATE_TIME_CONSTANT_S)
    stream.refresh_from_db()
    assert stream.rate == pytest.approx(10 * 0.36788, rel=1e-3)
    assert Stream.objects.get(name="s1").rate is None


def test_rates_decay_while_no_records_arrive(sf: Cluster) -> None:
    """An idle cluster has no batches; one with unread records waits for its batch."""
    now, rates = timezone.now(), Stream.objects.filter(cluster=sf)
    rates.update(rate=10.0)
    rates.filter(name="s1").update(rate=ingestion.SILENT)
    since = now - timedelta(seconds=3 * ingestion.RATE_TIME_CONSTANT_S + 1)
    Cluster.objects.update(state="running", last_sample_at=since)
    health = ClusterHealth.objects.create(cluster=sf, observed_at=now, unread=5)
    ingestion.decay_idle_rates(now)
    assert rates.get(name="s0").rate == 10
    health.unread = 0
    health.save()
    ingestion.decay_idle_rates(now)
    assert rates.get(name="s0").rate == pytest.approx(10 * 0.92, rel=1e-3)
    assert rates.get(name="s1").rate == 0


@pytest.mark.parametrize(("after", "lost"), [(150, 0), (9, 0), (0, 0), (150, 1)])
def test_a_stream_has_its_new_rate_half_a_minute_after_a_step(
    sf: Cluster, after: int, lost: int
) -> None:
    """Noise, and the bursts of another stream, are no steps; `lost`: a period that is missing."""
    steady, bursty = Stream.objects.filter(cluster=sf).order_by("id")[:2]
    Stream.objects.filter(cluster=sf).update(rate=4.0)
    end = datetime.fromtimestamp(timezone.now().timestamp() // 10 * 10, UTC)
    for back in (back for back in range(40, 0, -1) if back != 1 + lost or not lost):
        arrived = {
            steady.pk: ((43 + after) / 2 if back == 3 else after)
            if back <= 3
            else 40 + 6 * (back % 2),
            bursty.pk: 0 if back % 3 else 120,
        }
        add_arrivals(sf, end - timedelta(seconds=10 * back), arrived)
    ingestion.update_rates(sf, {steady.pk: 4, bursty.pk: 4}, 1.0)
    steady.refresh_from_db()
    bursty.refresh_from_db()
    assert steady.rate == pytest.approx(after / 10, abs=0.01)
    assert bursty.rate == pytest.approx(4.0, rel=0.01)


def test_what_a_new_stream_had_in_its_log_is_no_rate_of_seconds(sf: Cluster) -> None:
    """The first batch of a stream that is 40 s old holds its 40 s; of an old one, who knows."""
    stream = Stream.objects.get(name="s0")
    for age, rate in ((40, 10), (4_000, 80)):
        created = timezone.now() - timedelta(seconds=age)
        Stream.objects.filter(pk=stream.pk).update(rate=None, created_at=created)
        ingestion.update_rates(sf, {stream.pk: 400}, 5.0)
        stream.refresh_from_db()
        assert stream.rate == pytest.approx(rate, rel=0.01)


def test_a_new_stream_has_the_mean_since_the_first_batch_of_its_cluster(sf: Cluster) -> None:
    """The records of the first batch are not counted, so neither is the time before it."""
    now = timezone.now()
    stream = Stream.objects.get(name="s0")
    Stream.objects.filter(pk=stream.pk).update(rate=None, created_at=now - timedelta(seconds=40))
    ingestion.record(sf, [telemetry(1, round(now.timestamp() * 1000) - 20_000)])
    ingestion.update_rates(sf, {stream.pk: 400}, 5.0)
    stream.refresh_from_db()
    assert stream.rate == pytest.approx(20, rel=0.01)


def test_a_span_is_read_in_at_most_nine_hundred_rows(sf: Cluster) -> None:
    """A chart of a day does not fetch a day of seconds."""
    now = datetime.now(UTC)
    assert fitting_seconds(now - timedelta(minutes=14), now) == 1
    assert fitting_seconds(now - timedelta(hours=2), now) == 10
    assert fitting_seconds(now - timedelta(hours=14), now) == 60


def test_a_month_is_read_in_five_minutes(sf: Cluster) -> None:
    """A month of minutes is 43,200 samples, which no chart shows."""
    end = datetime.now(UTC)
    for t in even_times(end - timedelta(days=1), 300, 35):
        add_sample(sf, t, {"in": 1.0}, 300)
        add_sample(sf, t, {"in": 2.0}, 60)
    read = samples(sf, end - timedelta(days=29), end)
    assert [sample["in"] for sample in read] == [1.0] * 35


def test_a_gap_is_filled_in_order(sf: Cluster) -> None:
    """What a browser missed, oldest first, nothing it has already."""
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    rows = [telemetry(i, now_ms - 10_000 + 1000 * i) for i in range(10)]
    ingestion.record(sf, rows)
    missed = since(sf, now_ms - 5000)
    assert [sample["t"] for sample in missed] == [now_ms - 4000 + 1000 * i for i in range(4)]
    assert len(since(sf, 0)) <= MAX_ROWS
    start = datetime.fromtimestamp(now_ms / 1000 - 60, UTC)
    assert len(samples(sf, start, datetime.now(UTC), 1)) == 10


def test_ended_queries_are_forgotten_after_the_retention(operator: Actor, sf: Cluster) -> None:
    """A living query is never forgotten, however old."""
    placed(operator, sf, {"old": ["s0"], "alive": ["s0"]})
    queries.end(operator, sf, ["old"])
    placement.place_pending(sf.pk)
    now = Query.objects.get(name="old").ended_at
    assert now is not None
    assert retention.prune_queries(now + timedelta(hours=7)) == 0, "its results are kept longer"
    Query.objects.update(retention_s=3600)
    assert retention.prune_queries(now + timedelta(hours=5)) == 0
    assert retention.prune_queries(now + timedelta(hours=7)) == 1
    assert list(Query.objects.values_list("name", flat=True)) == ["alive"]


def test_late_records_are_added_to_their_streams_and_queries(operator: Actor, sf: Cluster) -> None:
    """Of this cluster; a batch may have none."""
    (query,) = placed(operator, sf, {"a": ["s0"]})
    stream, other = sf.streams.get(name="s0"), sf.streams.get(name="s1")
    late: dict[str, Any] = {
        "late_streams": {str(stream.pk): 3},
        "late_queries": {str(query.pk): 2, "999999": 4},
    }
    elsewhere = Cluster.objects.create(slug="elsewhere", name="Elsewhere", slots=1)
    ingestion.record(sf, [telemetry(1, NOON_MS, **late), telemetry(2, NOON_MS + 1_000, **late)])
    ingestion.record(sf, [telemetry(3, NOON_MS + 2_000)])
    ingestion.record(elsewhere, [telemetry(1, NOON_MS, **late)])
    for row, total in ((stream, 6), (query, 4)):
        row.refresh_from_db()
        assert (row.late_records, row.late_at) == (total, NOON + timedelta(seconds=1))
    other.refresh_from_db()
    assert (other.late_records, other.late_at) == (0, None)
