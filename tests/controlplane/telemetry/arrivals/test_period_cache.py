"""Periods of arrivals that a process keeps: complete ones, a bounded number of values."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.models import Cluster, SeriesPeriod
from controlplane.telemetry import series
from controlplane.telemetry.arrivals.rates import PeriodCache
from tests.support.series import add_arrivals

pytestmark = pytest.mark.django_db
PERIOD = timedelta(seconds=10)


def add(cluster: Cluster, place: int, records: float, counted: timedelta = PERIOD) -> None:
    t = series.start_of(timezone.now(), 10) - PERIOD * (20 - place)
    add_arrivals(cluster, t, {3: records, 7: 1.0}, measured_s=counted.total_seconds())


def read(cache: PeriodCache, cluster: Cluster) -> tuple[list[float], int]:
    """Return the arrivals of stream 3 by period, and the number of SQL statements."""
    rows = series.stored([cluster.pk], ["stream"], 10).filter(measured_s__gte=10)
    with CaptureQueriesContext(connection) as captured:
        found = [float(period.values["stream_arrived"][0]) for period in cache.read(cluster, rows)]
    return found, len(captured)


def test_only_new_periods_are_read(sf: Cluster) -> None:
    """Incomplete periods are left out until they are counted further."""
    cache = PeriodCache()
    for place in range(3):
        add(sf, place, 10.0 * place)
    add(sf, 3, 5.0, counted=PERIOD / 2)
    assert read(cache, sf) == ([0.0, 10.0, 20.0], 2)
    assert read(cache, sf) == ([0.0, 10.0, 20.0], 1)
    SeriesPeriod.objects.filter(cluster=sf).update(measured_s=10.0)
    assert read(cache, sf) == ([0.0, 10.0, 20.0, 5.0], 2)


def test_the_number_of_values_is_bounded(sf: Cluster) -> None:
    cache = PeriodCache(most=4)
    for place in range(5):
        add(sf, place, float(place))
    assert read(cache, sf)[0] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert read(cache, sf) == ([0.0, 1.0, 2.0, 3.0, 4.0], 2), "three of five were not kept"
