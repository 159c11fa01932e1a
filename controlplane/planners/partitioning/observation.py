"""Reading the input of the partitioning planner: samples of keys, and costs of merging."""

import json
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone
from redis.exceptions import RedisError

from controlplane.connections import redis_client
from controlplane.models import Cluster, Query, QueryStream
from controlplane.planners.partitioning.adapter import NO_QUERY
from controlplane.planners.partitioning.measured_keys import MeasuredKeys, measured_keys
from controlplane.planning.adapter import Missing
from controlplane.planning.measured.costs import merge_seconds
from controlplane.planning.measured.sampled_keys import PartitioningInput, SampledQuery
from controlplane.telemetry.grid import RAW
from controlplane.telemetry.series import read
from controlplane.wire.key_samples import KeySample, read_newest
from controlplane.wire.query import is_join
from controlplane.wire.query_text import QueryText

logger = logging.getLogger(__name__)

# Samples that are read for a plan: of each query, and of all queries together.
MOST_OF_QUERY: Final = 120
MOST: Final = 4_000
# Queries whose samples are in memory at once.
TOGETHER: Final = 50
# Keys in a snapshot: of each query at most and at least, and of all queries together.
MOST_KEYS: Final = 1_024
LEAST_KEYS: Final = 64
MOST_KEYS_IN_ALL: Final = 200_000
# Older samples are of other keys.
RECENT: Final = timedelta(minutes=10)
# Samples of telemetry of this time give the costs of merging.
COSTS: Final = timedelta(seconds=60)
# Decimals of a share in a snapshot.
_DECIMALS: Final = 9


def grouped_queries(cluster: Cluster) -> list[Query]:
    """Return the running queries whose key grouping can change, with their aggregator, by id."""
    rows = Query.objects.filter(
        cluster=cluster,
        state=Query.State.RUNNING,
        task_count__gt=1,
        aggregator__isnull=False,
    )
    return [
        query
        for query in rows.select_related("aggregator").order_by("id")
        if not is_join(QueryText.from_json(json.loads(query.text)))
    ]


def read_input(cluster: Cluster, now: datetime | None = None) -> PartitioningInput:
    """Return what is known of the keys of a cluster; no query if Redis is unavailable."""
    moment = now or timezone.now()
    queries = grouped_queries(cluster)
    most_keys = MOST_KEYS_IN_ALL // max(1, len(queries))
    keys_per_query = max(LEAST_KEYS, min(MOST_KEYS, most_keys))
    # Samples of each split node: the records/s are the sum over them.
    count = max(2 * cluster.splits, min(MOST_OF_QUERY, MOST // max(1, len(queries))))
    rows = recent_keys(cluster, [query.pk for query in queries], count, moment - RECENT)
    sampled = dict(rows)
    reading = QueryStream.objects.filter(query__in=queries).order_by("query_id", "stream_id")
    streams = QueryStream.by_query(reading)
    return PartitioningInput(
        [
            sampled_query(query, sampled[query.pk], streams.get(query.pk, ()), keys_per_query)
            for query in queries
            if query.pk in sampled
        ],
        cluster.trigger_ms / 1000,
        merge_cost(cluster, moment),
    )


def missing(cluster: Cluster, _: str) -> Missing | None:
    """Return what a cluster lacks for a plan."""
    return None if grouped_queries(cluster) else Missing("no_split_query", NO_QUERY)


def merge_cost(cluster: Cluster, now: datetime) -> float | None:
    """Return the seconds that an aggregator node needs per partial result, None: not measured."""
    return merge_seconds(read(cluster, ("merged", "merge_busy"), now - COSTS, now, RAW))


def recent_keys(
    cluster: Cluster, queries: Sequence[int], count: int, since: datetime
) -> Iterator[tuple[int, MeasuredKeys]]:
    """Yield the ids of sampled queries with their keys since a time, of `count` samples each."""
    since_ms = since.timestamp() * 1000
    for query, samples in newest_samples(cluster, queries, count):
        keys = measured_keys([sample for sample in samples if sample.clock_ms >= since_ms])
        if keys is not None:
            yield query, keys


def newest_samples(
    cluster: Cluster, queries: Sequence[int], count: int, seconds: float | None = None
) -> Iterator[tuple[int, Sequence[KeySample]]]:
    """Yield the ids of sampled queries with their newest `count` samples, oldest first.

    `seconds`: samples of batches that are certainly older are not read. Yields nothing if Redis is
    unavailable.
    """
    batches = None if seconds is None else math.ceil(1000 * seconds / cluster.trigger_ms)
    # A micro-batch takes at least one interval of the trigger.
    from_batch = 0 if batches is None else max(0, (cluster.last_batch or 0) - batches)
    for first in range(0, len(queries), TOGETHER):
        some = queries[first : first + TOGETHER]
        yield from _newest(cluster, some, count, from_batch).items()


def _newest(
    cluster: Cluster, queries: Sequence[int], count: int, from_batch: int
) -> Mapping[int, Sequence[KeySample]]:
    try:
        return read_newest(redis_client(), cluster.slug, queries, count, from_batch)
    except (RedisError, OSError) as away:
        logger.warning("Reading samples of keys of %s failed: %s", cluster.slug, away)
        return {}


def sampled_query(
    query: Query, keys: MeasuredKeys, streams: Sequence[int] = (), most: int = MOST_KEYS
) -> SampledQuery:
    """Return the keys of a query as the planner reads them, the `most` frequent ones by hash."""
    shares: list[Any] = keys.shares[:most].tolist()
    return SampledQuery(
        query.pk,
        round(keys.records_per_s, 3),
        query.window_s,
        keys.hashes[:most].tolist(),
        [round(share, _DECIMALS) for share in shares],
        max(0, keys.distinct - len(shares)),
        list(streams),
    )
