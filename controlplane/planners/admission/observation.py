"""Reading the input of the admission planner from the rows of a cluster."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from django.db.models import TextField
from django.db.models.functions import Cast
from django.utils import timezone

from algorithms.admission.planner import PARALLELISM
from algorithms.vocabulary import Floats
from controlplane.catalog.split_reading import partition_parts
from controlplane.models import Cluster, Query, QueryStream, Stream
from controlplane.planners.admission.adapter import NO_STREAM
from controlplane.planners.admission.inputs import (
    AdmissionInput,
    AdmittedStream,
    AggregatedQuery,
    MeasuredCosts,
)
from controlplane.planners.admission.problem import NO_CAPACITY
from controlplane.planning.adapter import Missing
from controlplane.planning.measured.costs import (
    COST_SERIES,
    merge_seconds,
    operator_seconds,
    partials_per_record,
    split_seconds,
)
from controlplane.policies.store import policy_of
from controlplane.telemetry.arrivals import PERIOD_S, history
from controlplane.telemetry.grid import RAW, Grid
from controlplane.telemetry.measures import PRESENT
from controlplane.telemetry.series import read

# Periods of the past that are read of each stream: an hour, fewer of many streams.
LONGEST: Final = 360
MOST_RATES: Final = 720_000
# The clock of the data plane may be so much ahead.
_CLOCKS: Final = timedelta(seconds=5)
# The weight of the newest latency in the moving average (paper 001, section 2.2).
LATENCY_WEIGHT: Final = 0.3


def read_input(cluster: Cluster, now: datetime | None = None) -> AdmissionInput:
    """Return what is known of the streams and split nodes of a cluster."""
    # As text: most streams have equal values, which are parsed once.
    texts = [Cast(name, TextField()) for name in ("characteristics", "forecaster")]
    rows = Stream.objects.filter(cluster=cluster).order_by("id")
    streams = list(rows.values_list("id", "name", *texts, "declared_rate"))
    periods = known_periods(len(streams))
    ids = [row[0] for row in streams]
    rates = history(cluster, periods, PERIOD_S, ids).rates
    batches = _batches(cluster, now or timezone.now())
    queries = _aggregated_queries(cluster)
    newest = rates[:, -int(PRESENT.total_seconds() / PERIOD_S) :]
    known = dict(zip(ids, newest, strict=True))
    parts = partition_parts(cluster)
    return AdmissionInput(
        seconds=PERIOD_S,
        capacity=split_capacity(cluster, batches),
        latency=_latency(batches),
        streams=[
            AdmittedStream(pk, name, row, _declared(_parsed(characteristics), declared),
                           dict(_parsed(forecaster)), list(parts.get(pk, {}).items()))
            for (pk, name, characteristics, forecaster, declared), row in zip(
                streams, _known(rates), strict=True
            )
        ],
        interval_s=cluster.trigger_ms / 1000,
        costs=_costs(cluster, batches, queries, known),
        queries=queries,
        # As all plans: so that a problem counts as solved after the plan.
        room=policy_of(cluster).dead_band,
    )  # fmt: skip


def missing(cluster: Cluster, algorithm: str) -> Missing | None:
    """Return what a cluster lacks for a plan of an algorithm."""
    if not cluster.streams.exists():
        return Missing("no_stream", NO_STREAM)
    if algorithm != PARALLELISM and not split_capacity(cluster):
        return Missing("no_capacity", NO_CAPACITY)
    return None


def known_periods(streams: int) -> int:
    """Return the number of past periods that are read: an hour, fewer of many streams."""
    return max(2, min(LONGEST, MOST_RATES // max(1, streams)))


def input_of_stream(stream: Stream, rates: Floats) -> AdmissionInput:
    """Return the input of the planner for one stream alone, with its past rates, float64[t]."""
    characteristics = _declared(stream.characteristics, stream.declared_rate)
    (known,) = _known(rates[None, :])
    row = AdmittedStream(stream.pk, stream.name, known, characteristics, stream.forecaster)
    return AdmissionInput(seconds=PERIOD_S, capacity=0.0, latency={}, streams=[row])


def split_capacity(cluster: Cluster, batches: Grid | None = None) -> float:
    """Return the records/s of each split node: declared, else measured, 0 if neither is known.

    Measured: see `costs.split_seconds`.
    """
    if cluster.split_capacity:
        return cluster.split_capacity
    known = _batches(cluster, timezone.now()) if batches is None else batches
    seconds = split_seconds(known, cluster.split_capacity_at)
    return round(1 / seconds, 3) if seconds else 0.0


def _aggregated_queries(cluster: Cluster) -> list[AggregatedQuery]:
    """Return the running queries with an aggregator node, and their streams."""
    reading = QueryStream.objects.filter(
        query__cluster=cluster, query__state=Query.State.RUNNING, query__aggregator__isnull=False
    )
    streams = QueryStream.by_query(reading.order_by("query_id", "stream_id"))
    return [AggregatedQuery(query, read) for query, read in streams.items()]


def _costs(
    cluster: Cluster,
    batches: Grid,
    queries: Sequence[AggregatedQuery],
    rates: Mapping[int, Any],
) -> MeasuredCosts:
    """Return the measured costs, none without queries that they are for.

    `rates`: records/s of the streams in recent periods, by id.
    """
    if not queries:
        return MeasuredCosts()
    emulated = cluster.nodes.filter(emulated=True).values_list("index", "capacity")
    read = [rates[stream] for query in queries for stream in query.streams]
    known = [row[~np.isnan(row)] for row in read]
    records_per_s = sum(float(row.mean()) for row in known if len(row))
    return MeasuredCosts(
        operator_seconds(batches, dict(emulated)),
        merge_seconds(batches),
        partials_per_record(batches, records_per_s),
    )


def _batches(cluster: Cluster, now: datetime) -> Grid:
    """Return the series of the micro-batches of the last `PRESENT`."""
    names = (*COST_SERIES, "split_latency")
    return read(cluster, names, now - PRESENT, now + _CLOCKS, RAW)


def _latency(batches: Grid) -> dict[int, float]:
    """Return the moving average of each split node's latency, in seconds."""
    result: dict[int, float] = {}
    for index, column in enumerate(batches["split_latency"].T):
        for ms in column[~np.isnan(column)].tolist():
            before = result.get(index, 0.0)
            result[index] = before + LATENCY_WEIGHT * (ms / 1000 - before)
    return {index: round(seconds, 3) for index, seconds in result.items()}


def _known(rates: Floats) -> list[Sequence[float | None]]:
    """Return the rates of each stream without those before its first known one."""
    if not rates.shape[1]:
        return [[] for _ in range(len(rates))]
    unknown = np.isnan(rates)
    first = np.where(unknown.all(axis=1), rates.shape[1], (~unknown).argmax(axis=1))
    has_gap = unknown.sum(axis=1) > first
    rows: list[list[float]] = np.round(rates, 3).tolist()
    return [
        [None if math.isnan(value) else value for value in row[start:]] if gap else row[start:]
        for row, start, gap in zip(rows, first.tolist(), has_gap.tolist(), strict=True)
    ]


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Mapping[str, Any]:
    row: Mapping[str, Any] = json.loads(text)
    return MappingProxyType(row)


def _declared(characteristics: Mapping[str, Any], rate: float | None) -> dict[str, Any]:
    """Return the characteristics; a declared rate is the rate at the start of the stream."""
    row = dict(characteristics)
    peak = row.get("peak")
    if "rate" not in row and rate and (peak is None or rate <= peak):
        row["rate"] = rate
    return row
