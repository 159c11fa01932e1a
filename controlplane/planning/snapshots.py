"""Creation and storage of snapshots of clusters."""

import json
import logging
from collections.abc import Collection, Mapping
from itertools import chain
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import Q, QuerySet
from django.utils import timezone
from redis.exceptions import RedisError

from controlplane.child_processes.garbage_collection import without_garbage_collection
from controlplane.connections import redis_client
from controlplane.errors import Conflict
from controlplane.models import (
    ArmedLadder,
    Cluster,
    Exclusion,
    Query,
    QueryStream,
    Snapshot,
    Stream,
    Task,
)
from controlplane.planning.adapters import InputReader
from controlplane.plans.snapshot import (
    ClusterSnapshot,
    DropRuleRow,
    Excluded,
    GroupingRow,
    NodeRow,
    QueryRow,
    SplitQueryRow,
    StreamRow,
    canonical,
    digest_of,
)
from controlplane.queries.key_groupings import route_text
from controlplane.telemetry.arrivals.catching_up import input_share
from controlplane.telemetry.series import newest_batches
from controlplane.wire.measures import KEPT, TaskMeasure, read_tasks
from controlplane.wire.query import is_join
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.route import NO_AGGREGATOR
from controlplane.wire.routing.split_assignment import assigned

logger = logging.getLogger(__name__)

# By query and task.
Measured = Mapping[tuple[int, int], TaskMeasure]


def measured_tasks(cluster: Cluster) -> Measured:
    """Return the last measures by query and task, none if Redis is unavailable.

    Rates are those of arriving records, also while a backlog is worked off.
    """
    nodes = list(cluster.nodes.values_list("index", flat=True))
    try:
        measures = read_tasks(redis_client(), cluster.slug, nodes)
    except (RedisError, OSError) as away:
        logger.warning("Reading measures of %s failed: %s", cluster.slug, away)
        return {}
    share = input_share(newest_batches(cluster, ("arrived", "in"), KEPT))
    return {
        (measure.query, measure.task): measure._replace(
            evaluations_per_s=measure.evaluations_per_s * share
        )
        for measure in measures
    }


# Concurrent versions are rare.
TRIES = 20


def take_snapshot(
    cluster_id: int, nu: float, inputs: Collection[InputReader] = ()
) -> ClusterSnapshot:
    """Return a snapshot that is consistent with one routing version.

    `inputs`: the readers of additional parts, which only the proposals of some planners need.
    """
    for _ in range(TRIES):
        cluster = Cluster.objects.get(pk=cluster_id)
        with without_garbage_collection():
            snapshot = _read(cluster, nu, measured_tasks(cluster), inputs)
        if Cluster.objects.filter(pk=cluster_id, routing_version=cluster.routing_version).exists():
            return snapshot
    raise Conflict("busy", "The routing table changes too quickly; try again")


def keep_snapshot(snapshot: ClusterSnapshot) -> Snapshot:
    """Return the row of a snapshot; equal snapshots share a row."""
    text = canonical(snapshot.to_json())
    digest = digest_of(text)
    row = Snapshot.objects.filter(pk=digest).first()
    if row is not None:
        row.remember(snapshot)
        return row
    row, _ = Snapshot.objects.get_or_create(
        digest=digest,
        defaults={
            "data": Snapshot.packed(text),
            "size": len(text),
            "taken_at": timezone.now(),
        },
    )
    row.remember(snapshot)
    return row


def _read(
    cluster: Cluster, nu: float, measured: Measured, inputs: Collection[InputReader]
) -> ClusterSnapshot:
    running = Task.objects.filter(
        query__cluster=cluster, query__state=Query.State.RUNNING, query__task_count=1
    )
    rows = _fetch(
        running.order_by("query_id").values_list("query_id", "query__name", "node__index")
    )
    streams, read = _streams_of_running(cluster)
    # Schemas are slow to parse.
    columns = ("id", "rate", "declared_rate", "split", "partition_splits")
    known = list(Stream.objects.filter(cluster=cluster).only(*columns).order_by("id"))
    weights = {stream.pk: stream.weight for stream in known}
    columns = ("index", "name", "capacity", "active", "emulated")
    nodes = cluster.nodes.order_by("index").values_list(*columns)
    return ClusterSnapshot(
        version=cluster.routing_version,
        nu=nu,
        nodes=[NodeRow(*node) for node in nodes],
        streams=[StreamRow(stream, weights[stream]) for stream in read],
        queries=[QueryRow(query, name, node, streams.get(query, [])) for query, name, node in rows],
        state={
            query: measure.state_bytes
            for query, _, _ in rows
            if (measure := measured.get((query, 0))) is not None
        },
        split=_split_queries(cluster, measured, streams),
        excluded=_excluded(cluster),
        groupings=_groupings(cluster),
        splits={stream.pk: stream.split for stream in known},
        split_count=cluster.splits,
        split_capacity=cluster.split_capacity,
        split_emulated=cluster.split_emulated,
        drop_rules=[DropRuleRow(*row.edge, row.rule) for row in cluster.drops.all()],
        ladder=ArmedLadder.objects.filter(cluster=cluster).values_list("ladder", flat=True).first(),
        inputs={part.name: part for part in (read(cluster) for read in inputs)},
        partitions=assigned((row.pk, row.partition_splits) for row in known),
    )


def _fetch(values: QuerySet[Any, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a `values_list` of integers and text.

    A plain cursor: Django's conversion of half a million rows doubles the time of the query.
    """
    statement, parameters = values.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _streams_of_running(cluster: Cluster) -> tuple[dict[int, list[int]], list[int]]:
    """Return the streams of each query, ascending, and the set of all of them."""
    reading = QueryStream.objects.filter(query__cluster=cluster, query__state=Query.State.RUNNING)
    rows = _fetch(reading.order_by().values_list("query_id", "stream_id"))
    pairs = np.fromiter(chain.from_iterable(rows), np.int64, 2 * len(rows)).reshape(-1, 2)
    # Sorting half a million rows is faster here than in the database.
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    queries, first = np.unique(pairs[:, 0], return_index=True)
    streams = pairs[:, 1].tolist()
    stops = [*first.tolist(), len(streams)][1:]
    rows_by_query = zip(queries.tolist(), first.tolist(), stops, strict=True)
    return (
        {query: streams[start:stop] for query, start, stop in rows_by_query},
        np.unique(pairs[:, 1]).tolist(),
    )


def _split_queries(
    cluster: Cluster, measured: Measured, streams: Mapping[int, list[int]]
) -> list[SplitQueryRow]:
    rows = Task.objects.filter(
        query__cluster=cluster, query__state=Query.State.RUNNING, query__task_count__gt=1
    )
    ranges = Task.ranges(rows)
    names = dict(Query.objects.filter(pk__in=rows.values("query")).values_list("pk", "name"))
    return [
        SplitQueryRow(
            query,
            names[query],
            [list(item) for item in placed],
            *measures_of_tasks(query, placed[-1][2], measured),
            streams.get(query, []),
        )
        for query, placed in ranges.items()
    ]


def measures_of_tasks(query: int, count: int, measured: Measured) -> tuple[list[float], list[int]]:
    """Return the evaluations/s and bytes of state of each task of a query, 0 if not measured."""
    known = [measured.get((query, task)) for task in range(count)]
    return (
        [round(measure.evaluations_per_s, 3) if measure else 0.0 for measure in known],
        [measure.state_bytes if measure else 0 for measure in known],
    )


def _groupings(cluster: Cluster) -> list[GroupingRow]:
    rows = Query.objects.filter(cluster=cluster, state=Query.State.RUNNING)
    grouped = rows.filter(~Q(key_grouping="") | Q(aggregator__isnull=False)).order_by("id")
    return [
        GroupingRow(
            query,
            route_text(name, parameters),
            NO_AGGREGATOR if aggregator is None else aggregator,
            joins=is_join(QueryText.from_json(json.loads(text))),
            more_aggregators=more,
        )
        for query, name, parameters, aggregator, text, more in grouped.values_list(
            "id",
            "key_grouping",
            "key_grouping_parameters",
            "aggregator__index",
            "text",
            "more_aggregators",
        )
    ]


def _excluded(cluster: Cluster) -> list[Excluded]:
    live = Exclusion.objects.filter(cluster=cluster, expires_at__gt=timezone.now())
    rows = live.order_by("kind", "subject").values_list("kind", "subject")
    streams = dict(cluster.streams.values_list("name", "id")) if rows else {}
    return [
        Excluded(kind, streams.get(subject, 0) if kind == Exclusion.Kind.STREAM else subject)
        for kind, subject in rows
    ]
