"""Reading the input of the shedding planner from the rows of a cluster."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from django.utils import timezone

from controlplane.catalog.split_reading import reading_of
from controlplane.models import Cluster, Policy, Query, QueryStream, Stream
from controlplane.planners.shedding.inputs import (
    CostSource,
    NodeSeconds,
    SheddingInput,
    SheddingQuery,
    SheddingStream,
)
from controlplane.planners.shedding.node_costs import measured_node
from controlplane.planners.shedding.problem import NO_QUERY
from controlplane.planning.adapter import Missing
from controlplane.planning.load_model import last_share
from controlplane.planning.measured.costs import (
    COST_SERIES,
    batch_seconds,
    merge_seconds,
    node_work,
    partials_per_record,
    split_seconds,
)
from controlplane.plans.ladder_settings import SheddingSettings
from controlplane.queries.key_groupings import route_text
from controlplane.telemetry.arrivals import PERIOD_S, history
from controlplane.telemetry.grid import RAW, Grid
from controlplane.telemetry.series import read
from controlplane.wire.query_text import QueryText

# Rates are means of this time.
RECENT: Final = timedelta(seconds=60)
# Samples of this time give the costs: the number of records must change for a slope.
MEASURED: Final = timedelta(minutes=10)
_MOST_SAMPLES: Final = 600
# Texts of one process; equal texts are parsed once.
_TEXTS: Final = 4096


def read_input(cluster: Cluster, now: datetime | None = None) -> SheddingInput:
    """Return what is known of the rates, queries and costs of a cluster."""
    moment = now or timezone.now()
    measured = read(cluster, COST_SERIES, moment - MEASURED, moment, RAW)
    batches = measured.where(slice(-_MOST_SAMPLES, None))
    recent = batches.since(moment - RECENT)
    reads = _reads(cluster)
    streams = _streams(cluster, {stream for read in reads.values() for stream in read})
    declared = cluster.split_capacity
    return SheddingInput(
        streams,
        _queries(cluster, reads),
        _nodes(cluster, batches),
        round(1 / declared, 12) if declared else split_seconds(batches, cluster.split_capacity_at),
        merge_seconds(batches),
        partials_per_record(recent, _aggregated_rate(cluster, reads, streams)),
        shedding_settings(cluster),
        batch_seconds(batches),
        not declared,
    )


def missing(cluster: Cluster, _: str) -> Missing | None:
    """Return what a cluster lacks for a plan."""
    running = cluster.queries.filter(state=Query.State.RUNNING)
    return None if running.exists() else Missing("no_query", NO_QUERY)


def shedding_settings(cluster: Cluster) -> SheddingSettings:
    """Return the settings of ladders in the policy of a cluster."""
    stored = Policy.objects.filter(cluster=cluster).values_list("settings", flat=True).first()
    return SheddingSettings.of_policy(stored or {})


def measured_rates(cluster: Cluster, streams: Sequence[int]) -> dict[int, float]:
    """Return the mean records/s of streams in the last minute by id, without unknown ones."""
    known = history(cluster, int(RECENT.total_seconds() / PERIOD_S), PERIOD_S, sorted(streams))
    return {stream: round(rate, 3) for stream, rate in known.means.items()}


def _reads(cluster: Cluster) -> dict[int, list[int]]:
    """Return the ids of the streams of each running query, by query."""
    rows = QueryStream.objects.filter(query__cluster=cluster, query__state=Query.State.RUNNING)
    return QueryStream.by_query(rows.order_by("query_id", "stream_id"))


def _streams(cluster: Cluster, read: set[int]) -> list[SheddingStream]:
    """Return the streams that queries read, with the rates that their static drop rules leave."""
    rates = measured_rates(cluster, sorted(read))
    kept = {row.stream_id: 1 - last_share(row.value) for row in cluster.drops.filter(query=None)}
    shares = reading_of(cluster).shares()
    columns = ("id", "name", "split", "declared_rate")
    rows = Stream.objects.filter(cluster=cluster).order_by("id").values_list(*columns)
    return [
        SheddingStream(
            pk,
            name,
            None if rate is None else round(rate * kept.get(pk, 1.0), 3),
            split,
            () if shares.get(pk) in (None, {split: 1.0}) else list(shares[pk].items()),
        )
        for pk, name, split, declared in rows
        for rate in [rates.get(pk, declared)]
        if pk in read
    ]


def _queries(cluster: Cluster, reads: Mapping[int, list[int]]) -> list[SheddingQuery]:
    columns = (
        "id", "text", "task_count", "key_grouping", "key_grouping_parameters", "shedding_weight",
        "shedding_floor",
    )  # fmt: skip
    running = Query.objects.filter(cluster=cluster, state=Query.State.RUNNING).order_by("id")
    first: dict[Any, int] = {}
    result = []
    for pk, text, tasks, name, parameters, weight, floor in running.values_list(*columns):
        window_ms, slide_ms, right, key = _parsed(text)
        grouping = route_text(name, parameters)
        streams = reads.get(pk, [])
        alike = tuple(streams), text, tasks, grouping
        result.append(
            SheddingQuery(
                pk, weight, floor, streams, list(right), window_ms, slide_ms,
                f"{key}{grouping}" if tasks > 1 else "", first.setdefault(alike, pk),
            )
        )  # fmt: skip
    return result


@lru_cache(maxsize=_TEXTS)
def _parsed(text: str) -> tuple[int, int, tuple[int, ...], str]:
    """Return window and slide in ms, the right side, and what assigns records to tasks."""
    query = QueryText.from_json(json.loads(text))
    slide = query.window_s if query.slide_s is None else query.slide_s
    key = json.dumps([list(query.key), [list(pair) for pair in query.on], dict(query.columns)])
    return round(query.window_s * 1000), round(slide * 1000), tuple(query.right), key


def _nodes(cluster: Cluster, batches: Grid) -> list[NodeSeconds]:
    """Return the nodes of a cluster with the seconds that each needs per delivered record."""
    work = node_work(batches)
    columns = ("index", "name", "capacity", "emulated")
    return [
        NodeSeconds(index, name, round(1 / capacity, 12), emulated=True, source=CostSource.EMULATED)
        if emulated
        else measured_node(index, name, capacity, work.get(index))
        for index, name, capacity, emulated in (
            cluster.nodes.order_by("index").values_list(*columns)
        )
    ]


def _aggregated_rate(
    cluster: Cluster, reads: Mapping[int, list[int]], streams: Sequence[SheddingStream]
) -> float:
    """Return the records/s of all queries with an aggregator node."""
    rates = {stream.id: stream.rate or 0.0 for stream in streams}
    aggregated = Query.objects.filter(
        cluster=cluster, state=Query.State.RUNNING, aggregator__isnull=False
    )
    ids = aggregated.values_list("id", flat=True)
    return sum(rates.get(stream, 0.0) for query in ids for stream in reads.get(query, ()))
