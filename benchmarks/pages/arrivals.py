"""An hour of arrivals of all streams of a cluster, for the pages that forecast rates."""

from datetime import timedelta
from typing import Final

import numpy as np
from django.utils import timezone

from controlplane.models import Cluster
from controlplane.telemetry import series
from controlplane.telemetry.arrivals import PERIOD_S, period_of
from controlplane.telemetry.series import start_of

HOUR_S: Final = 3_600


def add_arrivals(cluster: Cluster, seconds: int = HOUR_S) -> None:
    """Store so many seconds of arrivals until now, in periods of ten seconds and their roll-ups.

    Each stream has a rate of its own that varies slowly, with noise.
    """
    draw = np.random.default_rng(5)
    streams = np.array(cluster.streams.order_by("pk").values_list("pk", flat=True), np.int64)
    mean, phase = draw.uniform(1, 100, len(streams)), draw.uniform(0, 6, len(streams))
    length = timedelta(seconds=PERIOD_S)
    stop, count = start_of(timezone.now(), PERIOD_S), seconds // PERIOD_S
    periods = []
    for place in range(count):
        t = stop - length * (count - place)
        rate = mean * (1 + 0.3 * np.sin(phase + place / 60)) * draw.normal(1, 0.05, len(streams))
        arrived = np.maximum(0, rate * PERIOD_S).round()
        periods.append(period_of(t, streams, arrived, np.zeros(len(streams))))
    series.record(cluster, periods)
    series.roll_up(timezone.now())
