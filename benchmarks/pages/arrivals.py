"""An hour of arrivals of all streams of a cluster, for the pages that forecast rates."""

from datetime import timedelta
from typing import Final

import numpy as np
from django.utils import timezone

from controlplane.models import Cluster, StreamArrivals
from controlplane.telemetry import arrivals
from controlplane.telemetry.arrivals import PERIOD_S, start_of

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
    rows = []
    for place in range(count):
        t = stop - length * (count - place)
        rate = mean * (1 + 0.3 * np.sin(phase + place / 60)) * draw.normal(1, 0.05, len(streams))
        data = StreamArrivals.packed(
            streams, np.maximum(0, rate * PERIOD_S).round(), np.zeros(len(streams))
        )
        row = StreamArrivals(cluster=cluster, seconds=PERIOD_S, t=t, counted_until=t + length)
        row.data = data
        rows.append(row)
    StreamArrivals.objects.bulk_create(rows, batch_size=50)
    arrivals.roll_up(timezone.now())
