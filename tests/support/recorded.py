"""Recorded arrivals and samples after an execution, for the proof of a plan."""

from datetime import datetime, timedelta

import numpy as np

from controlplane.models import Cluster, MetricSample, Proposal, Stream, StreamArrivals


def record_arrivals(cluster: Cluster, begin: datetime, factors: list[float]) -> None:
    """Store the snapshot's rates times a factor for each period of ten seconds."""
    rows = list(Stream.objects.filter(cluster=cluster).order_by("pk"))
    ids = np.array([row.pk for row in rows])
    rates = np.array([row.weight for row in rows])
    first = begin.replace(microsecond=0, second=begin.second // 10 * 10)
    for number, factor in enumerate(factors):
        t = first + timedelta(seconds=10 * number)
        StreamArrivals.objects.create(
            cluster=cluster, seconds=10, t=t, counted_until=t + timedelta(seconds=10),
            data=StreamArrivals.packed(ids, 10 * factor * rates, np.zeros(len(ids))),
        )  # fmt: skip


def record_samples(proposal: Proposal, begin: datetime) -> None:
    """Store samples of a tenth more load than the plan predicts."""
    loads = [1.1 * rate for rate in proposal.after["rates"]]
    MetricSample.objects.bulk_create(
        MetricSample(
            cluster=proposal.cluster, resolution=1, t=t,
            values={"t": round(t.timestamp() * 1000), "read": 100.0, "delivered": 150.0,
                    "loads": loads, "p95": 400.0, "span_s": 1.0},
        )
        for t in (begin + timedelta(seconds=second) for second in range(6, 60))
    )  # fmt: skip
