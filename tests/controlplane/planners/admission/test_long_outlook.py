"""The forecast of the next three periods of a stream, and its lag."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from controlplane.models import Cluster, Stream
from controlplane.planners.admission.long_outlook import LongOutlook, long_outlook_of
from controlplane.telemetry import series
from controlplane.telemetry.arrivals import lag_of, lags, period_of
from tests.support.series import add_arrivals

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
Rate = Callable[[float], float]


def store(stream: Stream, seconds: int, length: timedelta, rate: Rate, unread: float = 0.0) -> None:
    """Store the arrivals of a stream before `NOW` in periods of a length; `rate` by seconds."""
    count = round(length.total_seconds() / seconds)
    start = NOW - timedelta(seconds=seconds * count)
    periods = []
    for place in range(count):
        t = start + timedelta(seconds=seconds * place)
        counts = np.array([seconds * rate(t.timestamp())])
        periods.append(period_of(t, np.array([stream.pk]), counts, np.array([unread]), seconds))
    series.record(stream.cluster, periods)


def outlook(stream: Stream) -> LongOutlook:
    found = long_outlook_of(stream, None)
    assert found is not None
    return found


def wave(period_s: float) -> Rate:
    return lambda t: 1000 + 300 * float(np.sin(2 * np.pi * t / period_s))


@pytest.fixture
def stream(sf: Cluster) -> Stream:
    return sf.streams.get(name="s0")


def test_three_measured_periods_are_forecast(stream: Stream) -> None:
    """Of an hour, from means of five minutes."""
    rate = wave(3600)
    store(stream, 10, timedelta(minutes=10), rate)
    store(stream, 300, timedelta(hours=12), rate)
    row = outlook(stream)
    assert (row.period_s, row.ahead, row.seconds, len(row.forecast)) == (3600, 3, 300, 36)
    assert len(row.rates) == 72
    actual = [rate(start.timestamp()) for start in row.next_starts]
    np.testing.assert_allclose(row.forecast, actual, rtol=0.05)
    assert all(low <= value <= high for low, value, high in
               zip(row.low, row.forecast, row.high, strict=True))  # fmt: skip
    assert row.error is not None
    assert row.error < 0.05
    assert [peak.time.minute for peak in row.peaks] == [15, 15, 15]
    assert row.peaks[0].rate == pytest.approx(1300, rel=0.03)


def test_long_periods_are_forecast_from_hours(stream: Stream) -> None:
    stream.characteristics = {"period_s": 86_400.0}
    store(stream, 10, timedelta(minutes=10), wave(86_400))
    store(stream, 300, timedelta(hours=6), wave(86_400))
    store(stream, 3600, timedelta(days=4), wave(86_400))
    row = outlook(stream)
    assert (row.seconds, row.ahead, len(row.forecast), len(row.rates)) == (3600, 3, 72, 48)


def test_without_a_known_period_an_hour_is_forecast(stream: Stream) -> None:
    store(stream, 10, timedelta(minutes=10), lambda _: 500.0)
    store(stream, 300, timedelta(hours=3), lambda _: 500.0)
    row = outlook(stream)
    assert (row.period_s, row.ahead, len(row.forecast), row.peaks) == (None, 0, 12, [])
    assert row.error == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(("minutes", "is_known"), [(25, False), (30, True)])
def test_an_hour_is_forecast_from_half_an_hour(
    stream: Stream, minutes: int, is_known: bool
) -> None:
    store(stream, 10, timedelta(minutes=10), lambda _: 500.0)
    store(stream, 300, timedelta(minutes=minutes), lambda _: 500.0)
    assert (long_outlook_of(stream, None) is not None) is is_known


def test_a_declared_period_needs_two_of_them(stream: Stream) -> None:
    stream.characteristics = {"period_s": 7200.0}
    store(stream, 10, timedelta(minutes=10), wave(7200))
    store(stream, 300, timedelta(hours=3), wave(7200))
    row = outlook(stream)
    assert (row.period_s, row.ahead, len(row.forecast)) == (7200, 0, 12)


def test_the_lag_is_the_time_of_the_unread_records(stream: Stream, sf: Cluster) -> None:
    assert lag_of(sf, stream.pk) is None
    store(stream, 10, timedelta(minutes=10), lambda _: 50.0, unread=100.0)
    newest = lag_of(sf, stream.pk)
    assert newest is not None
    assert (newest.unread, newest.seconds) == (100.0, 2.0)
    assert lag_of(sf, stream.pk + 10_000) is None
    # Longer periods keep the most unread records.
    add_arrivals(sf, NOW - timedelta(minutes=8), {stream.pk: 500.0}, unread=900.0)
    series.roll_up(NOW + timedelta(minutes=2))
    points = lags(sf, stream.pk, NOW - timedelta(hours=1), 300)
    assert [point.unread for point in points] == [900.0, 100.0]
    assert [point.seconds for point in points] == [18.0, 2.0]


def test_records_that_wait_without_arrivals_have_no_time(stream: Stream, sf: Cluster) -> None:
    store(stream, 10, timedelta(seconds=20), lambda _: 0.0, unread=7.0)
    newest = lag_of(sf, stream.pk)
    assert newest is not None
    assert (newest.unread, newest.seconds) == (7.0, None)
