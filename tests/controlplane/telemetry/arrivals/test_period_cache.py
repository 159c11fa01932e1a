"""Periods of arrivals that a process keeps: complete ones, a bounded number of values."""

from datetime import timedelta

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.models import Cluster, StreamArrivals
from controlplane.telemetry.arrivals import start_of
from controlplane.telemetry.arrivals.period_cache import PeriodCache

pytestmark = pytest.mark.django_db
PERIOD = timedelta(seconds=10)


def add(cluster: Cluster, place: int, records: float, counted: timedelta = PERIOD) -> None:
    t = start_of(timezone.now(), 10) - PERIOD * (20 - place)
    data = StreamArrivals.packed(np.array([3, 7]), np.array([records, 1.0]), np.zeros(2))
    StreamArrivals.objects.create(
        cluster=cluster, seconds=10, t=t, counted_until=t + counted, data=data
    )


def read(cache: PeriodCache, cluster: Cluster) -> tuple[list[float], int]:
    """Return the arrivals of stream 3 by period, and the number of SQL statements."""
    rows = StreamArrivals.objects.filter(cluster=cluster, seconds=10).order_by("t")
    with CaptureQueriesContext(connection) as captured:
        found = [float(arrived[0]) for _, (_, arrived) in cache.read(cluster, 10, rows)]
    return found, len(captured)


def test_only_new_periods_are_read(sf: Cluster) -> None:
    """Incomplete periods are left out until they are counted further."""
    cache = PeriodCache()
    for place in range(3):
        add(sf, place, 10.0 * place)
    add(sf, 3, 5.0, counted=PERIOD / 2)
    assert read(cache, sf) == ([0.0, 10.0, 20.0], 2)
    assert read(cache, sf) == ([0.0, 10.0, 20.0], 1)
    newest = StreamArrivals.objects.filter(cluster=sf).latest("t")
    StreamArrivals.objects.filter(pk=newest.pk).update(counted_until=newest.t + PERIOD)
    assert read(cache, sf) == ([0.0, 10.0, 20.0, 5.0], 2)


def test_the_number_of_values_is_bounded(sf: Cluster) -> None:
    cache = PeriodCache(most=4)
    for place in range(5):
        add(sf, place, float(place))
    assert read(cache, sf)[0] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert read(cache, sf) == ([0.0, 1.0, 2.0, 3.0, 4.0], 2), "three of five were not kept"
