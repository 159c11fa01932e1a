"""Arrivals of streams: what arrived when, whatever was read when."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.models import Cluster
from controlplane.telemetry import arrivals, series
from tests.support.admission import telemetry
from tests.support.series import add_arrivals, stored_times

pytestmark = pytest.mark.django_db
START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def rates(cluster: Cluster, stream: int, seconds: int = arrivals.PERIOD_S) -> list[float]:
    known = arrivals.history(cluster, 1000, seconds, [stream])
    # The first row only sets the clock, in the period before.
    pairs = zip(known.starts, known.of(stream).tolist(), strict=False)
    return [rate for start, rate in pairs if start >= START]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(slug="c", name="C", trigger_ms=1000)


def test_a_batch_counts_in_all_periods_that_it_lasts(cluster: Cluster) -> None:
    rows = [telemetry(after(0), {}), telemetry(after(25), {7: 100}), telemetry(after(30), {7: 0})]
    arrivals.count(cluster, rows)
    assert rates(cluster, 7) == [4.0, 4.0, 2.0]


def test_unread_records_count_when_they_arrive(cluster: Cluster) -> None:
    """A split node that reads nothing for ten seconds, and then twice as much."""
    arrivals.count(cluster, [telemetry(after(0), {})])
    arrivals.count(cluster, [telemetry(after(10), {7: 0}, {7: (50, 9000)})])
    arrivals.count(cluster, [telemetry(after(20), {7: 100})])
    assert rates(cluster, 7) == [5.0, 5.0]


def test_a_period_is_complete_when_it_is_over(cluster: Cluster) -> None:
    arrivals.count(cluster, [telemetry(after(0), {}), telemetry(after(9), {7: 9})])
    assert rates(cluster, 7) == []
    arrivals.count(cluster, [telemetry(after(11), {7: 2})])
    assert rates(cluster, 7) == [1.0]


def test_rates_before_the_first_record_are_not_known(cluster: Cluster) -> None:
    rows = [telemetry(after(0), {}), telemetry(after(10), {8: 10}), telemetry(after(20), {7: 10})]
    arrivals.count(cluster, rows)
    assert np.isnan(rates(cluster, 7)[0])
    assert rates(cluster, 7)[1] == 1.0
    assert rates(cluster, 8) == [1.0, 0.0]


def test_a_clock_that_steps_back_counts_nothing_twice(cluster: Cluster) -> None:
    arrivals.count(cluster, [telemetry(after(0), {}), telemetry(after(20), {7: 40})])
    arrivals.count(cluster, [telemetry(after(15), {7: 10})])
    arrivals.count(cluster, [telemetry(after(30), {7: 20})])
    assert rates(cluster, 7) == [2.0, 2.0, 2.0]


def test_longer_periods_have_the_same_records_and_stay_longer(cluster: Cluster) -> None:
    rows = [telemetry(after(60 * minute), {7: 60 * minute}) for minute in range(70)]
    for row in rows:
        arrivals.count(cluster, [row])
    now = after(70 * 60)
    series.roll_up(now)
    fine, five, hour = (
        len(stored_times(cluster, "stream", seconds)) for seconds in (10, 300, 3600)
    )
    assert (fine, five, hour) == (6 * 69 + 1, 14, 2)
    # Minute m has m records a second: the mean of minutes 1 to 60.
    assert rates(cluster, 7, 3600)[-1] == pytest.approx(30.5)
    assert series.roll_up(now) == 0
    series.prune(now + timedelta(days=1))
    assert stored_times(cluster, "stream", 10) == []
    assert len(stored_times(cluster, "stream", 300)) == five


@given(
    spans=st.lists(st.integers(100, 40_000), min_size=1, max_size=8),
    counts=st.lists(st.integers(0, 10_000), min_size=8, max_size=8),
    unread=st.lists(st.integers(0, 10_000), min_size=8, max_size=8),
)
def test_every_record_counts_once(spans: list[int], counts: list[int], unread: list[int]) -> None:
    """Law: the periods have what arrived: what was read, and what is still unread."""
    cluster = Cluster.objects.create(slug="law", name="law")
    rows, moment, total = [telemetry(START, {})], START, 0
    left = 0
    for span, read, waiting in zip(spans, counts, unread, strict=False):
        moment += timedelta(milliseconds=span)
        total += max(0, read + waiting - left)
        left = waiting
        rows.append(telemetry(moment, {7: read}, {7: (waiting, 0)} if waiting else {}))
    for row in rows:
        arrivals.count(cluster, [row])
    grid = series.read(cluster, ("stream_arrived",), START - timedelta(minutes=1), moment, 10)
    counted = np.nansum(grid["stream_arrived"])
    cluster.delete()
    assert counted == pytest.approx(total)


def test_a_time_range_has_the_shortest_stored_periods(cluster: Cluster) -> None:
    now = datetime.now(UTC)
    start = series.start_of(now, 3600) - timedelta(hours=1)
    rows = [telemetry(start, {})]
    rows += [telemetry(start + timedelta(seconds=10 * n), {7: 40}) for n in range(1, 121)]
    rows.append(telemetry(start + timedelta(seconds=1204), {7: 4}))
    arrivals.count(cluster, rows)
    known = arrivals.rates_between(cluster, start, now, [7, 9])
    # The last period is not complete, and no other stream has records.
    assert (known.seconds, known.starts[0], len(known.starts)) == (10, start, 120)
    assert set(known.of(7).tolist()) == {4.0}
    assert set(known.of(9).tolist()) == {0.0}
    assert arrivals.fitting_period(now - timedelta(hours=24), now) == 300
    assert arrivals.fitting_period(now - timedelta(days=30), now) == 3600
    # Nothing is rolled up yet, so a long range has the short periods.
    whole = arrivals.rates_between(cluster, now - timedelta(days=1), now, [7])
    assert (whole.seconds, len(whole.starts)) == (10, 121)
    series.roll_up(now)
    whole = arrivals.rates_between(cluster, now - timedelta(days=1), now, [7])
    # The first row only sets the clock, in the period before.
    assert (whole.seconds, whole.of(7).tolist()[:5]) == (300, [0.0, *[4.0] * 4])


def test_a_mean_rate_weighs_periods_by_the_time_that_is_measured(cluster: Cluster) -> None:
    now = datetime.now(UTC)
    start = series.start_of(now, 300) - timedelta(minutes=20)
    add_arrivals(cluster, start, {7: 600.0}, seconds=300, measured_s=10)
    add_arrivals(cluster, start + timedelta(minutes=5), {7: 300.0, 9: 60.0}, seconds=300)
    means = arrivals.rates_between(cluster, now - timedelta(days=1), now, [7, 8, 9]).means
    assert means == {7: 900 / 310, 8: 0.0, 9: 60 / 310}


def test_working_off_a_backlog_is_no_rate(cluster: Cluster) -> None:
    """Away for a minute of ten records a second, then sixty records in each batch of a second."""
    rows = [telemetry(after(0), {}), telemetry(after(10), {7: 100})]
    rows.append(telemetry(after(70), {7: 60}, {7: (540, 0)}))
    unread = 540
    for second in range(71, 82):
        unread = max(0, unread + 10 - 60)
        rows.append(telemetry(after(second), {7: 60 if unread else 50}, {7: (unread, 0)}))
    known = arrivals.intervals(cluster, rows)
    measured = [row.rate for row in known if row is not None and row.is_measured]
    assert measured == pytest.approx([10.0] * 13)
    arrivals.count(cluster, rows)
    assert rates(cluster, 7) == pytest.approx([10.0] * 8)


def test_a_slow_batch_counts_from_reading_to_reading(cluster: Cluster) -> None:
    """Its results are ten seconds late; the next batch reads what arrived meanwhile."""
    rows = [telemetry(after(0), {}), telemetry(after(11), {7: 10}), telemetry(after(12), {7: 100})]
    for row, read in zip(rows, (0, 1, 11), strict=True):
        row["read_ms"] = round(after(read).timestamp() * 1000)
    known = arrivals.intervals(cluster, rows)
    assert [row.rate for row in known[1:] if row is not None] == [10.0, 10.0]


def test_the_first_batch_only_starts_the_clock(cluster: Cluster) -> None:
    """Its records may have waited in the log for hours."""
    (first,) = arrivals.intervals(cluster, [telemetry(after(0), {7: 9_000}, {7: (9_000, 0)})])
    assert first is not None
    assert (first.arrived, first.rate) == ({}, None)


@pytest.mark.parametrize(("batch", "rate"), [(5, 1.0), (9, None)])
def test_records_of_lost_telemetry_are_no_rate(
    cluster: Cluster, batch: int, rate: float | None
) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(last_batch=3)
    rows = [telemetry(after(0), {}), telemetry(after(10), {7: 10})]
    for row, number in zip(rows, (4, batch), strict=True):
        row["batch"] = number
    known = arrivals.intervals(cluster, rows)[1]
    assert known is not None
    assert known.rate == rate


def test_periods_of_a_clock_that_ran_ahead_are_deleted(cluster: Cluster) -> None:
    arrivals.count(cluster, [telemetry(after(0), {}), telemetry(after(3600), {7: 10})])
    assert series.forget_after(cluster, after(60)) > 0
    arrivals.count(cluster, [telemetry(after(70), {7: 10}), telemetry(after(80), {7: 50})])
    assert rates(cluster, 7)[-1] == 5.0


def test_the_mean_of_a_period_is_over_its_measured_part(cluster: Cluster) -> None:
    """A cluster that was started 30 s before the end of five minutes has its rate, not a tenth."""
    add_arrivals(cluster, START, {7: 240}, seconds=300, measured_s=30.0)
    add_arrivals(cluster, after(300), {7: 80})
    assert rates(cluster, 7, 300) == [8.0]
