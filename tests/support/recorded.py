"""Recorded arrivals and samples after an execution, for the proof of a plan."""

from datetime import datetime, timedelta

from controlplane.models import Cluster, Proposal, Stream
from controlplane.telemetry import time_series
from tests.support.series import add_arrivals


def record_arrivals(cluster: Cluster, begin: datetime, factors: list[float]) -> None:
    """Store the snapshot's rates times a factor for each period of ten seconds."""
    rates = {stream.pk: stream.weight for stream in Stream.objects.filter(cluster=cluster)}
    first = begin.replace(microsecond=0, second=begin.second // 10 * 10)
    for number, factor in enumerate(factors):
        t = first + timedelta(seconds=10 * number)
        add_arrivals(cluster, t, {stream: 10 * factor * rate for stream, rate in rates.items()})


def record_samples(proposal: Proposal, begin: datetime) -> None:
    """Store samples of a tenth more load than the plan predicts."""
    loads = [1.1 * rate for rate in proposal.after["rates"]]
    times = (begin + timedelta(seconds=second) for second in range(6, 60))
    values = {"read": 100.0, "delivered": 150.0, "loads": loads, "p95": 400.0, "span_s": 1.0}
    time_series.record(proposal.cluster, (values | {"t": 1000 * t.timestamp()} for t in times))
