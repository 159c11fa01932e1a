"""Reading the input of the admission planner from the rows of a cluster."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any, Final

import numpy as np
from django.utils import timezone

from controlplane.arrivals import PERIOD_S, history
from controlplane.models import Cluster, MetricSample, Stream
from controlplane.plans.admission_input import AdmissionInput, AdmittedStream

# Periods of the past that are read of each stream: an hour, fewer of many streams.
LONGEST: Final = 360
MOST_RATES: Final = 720_000
# Samples of this time give the latencies and capacities of split nodes.
RECENT: Final = timedelta(seconds=60)
# The weight of the newest latency in the moving average (paper 001, section 2.2).
LATENCY_WEIGHT: Final = 0.3
# A split node that is busy for less of its time mostly shows the fixed cost of a micro-batch.
LEAST_BUSY: Final = 0.25


def read_input(cluster: Cluster, now: datetime | None = None) -> AdmissionInput:
    """Return what is known of the streams and split nodes of a cluster."""
    columns = ("id", "name", "characteristics", "forecaster", "declared_rate")
    rows = Stream.objects.filter(cluster=cluster).only(*columns).order_by("id")
    streams = list(rows)
    periods = max(2, min(LONGEST, MOST_RATES // max(1, len(streams))))
    rates = history(cluster, periods, PERIOD_S, [stream.pk for stream in streams]).rates
    samples = _samples(cluster, (now or timezone.now()) - RECENT)
    return AdmissionInput(
        seconds=PERIOD_S,
        capacity=split_capacity(cluster, samples),
        latency=_latency(samples),
        streams=[
            AdmittedStream(stream.pk, stream.name, _known(row), _declared(stream),
                           stream.forecaster)
            for stream, row in zip(streams, rates, strict=True)
        ],
    )  # fmt: skip


def split_capacity(cluster: Cluster, samples: Sequence[Mapping[str, Any]] | None = None) -> float:
    """Return the records/s of each split node: declared, else measured, 0 if neither is known.

    Measured: records/s over the share of time that a split node is busy, the median of the split
    nodes with a busy quarter of their time.
    """
    if cluster.split_capacity:
        return cluster.split_capacity
    known = samples if samples is not None else _samples(cluster, timezone.now() - RECENT)
    measured = [
        rate / busy
        for sample in known
        for rate, busy in zip(
            sample.get("split_loads") or (), sample.get("split_utilisation") or (), strict=False
        )
        if rate and busy and busy >= LEAST_BUSY
    ]
    return round(median(measured), 3) if measured else 0.0


def _samples(cluster: Cluster, since: datetime) -> list[Mapping[str, Any]]:
    rows = MetricSample.objects.filter(
        cluster=cluster, resolution=MetricSample.Resolution.RAW, t__gt=since
    )
    return list(rows.order_by("t").values_list("values", flat=True))


def _latency(samples: Sequence[Mapping[str, Any]]) -> dict[int, float]:
    """Return the moving average of each split node's latency, in seconds."""
    result: dict[int, float] = {}
    for sample in samples:
        for index, ms in enumerate(sample.get("split_latency") or ()):
            if ms is not None:
                before = result.get(index, 0.0)
                result[index] = before + LATENCY_WEIGHT * (ms / 1000 - before)
    return {index: round(seconds, 3) for index, seconds in result.items()}


def _known(row: Any) -> list[float | None]:
    """Return rates without those before the first known one."""
    values = np.round(row, 3)
    known = np.flatnonzero(~np.isnan(values))
    first = int(known[0]) if len(known) else len(values)
    return [None if np.isnan(value) else value for value in values[first:].tolist()]


def _declared(stream: Stream) -> dict[str, Any]:
    """Return the characteristics; a declared rate is the rate at the start of the stream."""
    row = dict(stream.characteristics)
    peak = row.get("peak")
    if (
        "rate" not in row
        and stream.declared_rate
        and (peak is None or stream.declared_rate <= peak)
    ):
        row["rate"] = stream.declared_rate
    return row
