"""What the intervals of a ladder cost: records kept per query, and the quality lost."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from controlplane.models import Cluster, Query, QueryStream, SheddingInterval
from controlplane.planners.shedding.inputs import SheddingQuery
from controlplane.planners.shedding.quality import kept_by
from controlplane.wire.routing.drop_rules import INPUT, Edge

# Queries times intervals that are computed together; older intervals have no costs.
MOST_PAIRS: Final = 100_000
# The queries of an interval that are listed: those that kept the least.
MOST_QUERIES: Final = 100


@dataclass(frozen=True)
class IntervalRecords:
    """The records of a query's streams in an interval, and those that the ladder dropped.

    `kept`: the part that it kept, of a join the mean of both sides.
    """

    id: int
    name: str
    weight: float
    floor: float
    arrived: int
    dropped: int
    kept: float


@dataclass(frozen=True)
class IntervalCost:
    """The cost of an interval; `queries`: those that lost records, the least kept first.

    `lossy_queries`: their number. `quality_lost`: the part of the value of all records by the
    present weights; None if the records of the streams are not stored or there are too many.
    """

    row: SheddingInterval
    quality_lost: float | None = None
    lossy_queries: int = 0
    queries: tuple[IntervalRecords, ...] = ()

    @property
    def seconds(self) -> float:
        """Return the length of the interval."""
        return (self.row.ended_at - self.row.started_at).total_seconds()


@dataclass(frozen=True)
class _Reader:
    """A query that ran from `begin` to `end`, None: it runs."""

    query: SheddingQuery
    name: str
    begin: datetime
    end: datetime | None

    def overlaps(self, row: SheddingInterval) -> bool:
        """Return whether it ran in an interval."""
        return self.begin < row.ended_at and (self.end is None or self.end > row.started_at)


def interval_costs(cluster: Cluster, rows: Sequence[SheddingInterval]) -> list[IntervalCost]:
    """Return the costs of intervals of a cluster, in their order (the newest first).

    A query counts with all records of its streams in an interval in which it ran for some time.
    """
    readers = _readers(cluster, rows) if rows else []
    costed = MOST_PAIRS // max(1, len(readers))
    return [
        _cost(row, readers) if row.by_stream and place < costed else IntervalCost(row)
        for place, row in enumerate(rows)
    ]


def _readers(cluster: Cluster, rows: Sequence[SheddingInterval]) -> list[_Reader]:
    """Return the queries that ran in some of these intervals."""
    start, stop = min(row.started_at for row in rows), max(row.ended_at for row in rows)
    ran = Query.objects.filter(cluster=cluster, placed_at__lt=stop).exclude(ended_at__lte=start)
    columns = (
        "id", "name", "text", "shedding_weight", "shedding_floor", "placed_at", "ended_at",
    )  # fmt: skip
    values = list(ran.order_by("-id").values_list(*columns)[: MOST_PAIRS + 1])
    if len(values) > MOST_PAIRS:
        return []
    reads = QueryStream.objects.filter(query__in=ran).order_by("query_id", "stream_id")
    streams = QueryStream.by_query(reads)
    return [
        _Reader(
            SheddingQuery(pk, weight, floor, streams.get(pk, ()), _right(text), 0, 0, "", pk),
            name,
            placed_at,
            ended_at,
        )
        for pk, name, text, weight, floor, placed_at, ended_at in values
    ]


def _right(text: str) -> Sequence[int]:
    """Return the ids of the right side of a join."""
    right: Sequence[int] = json.loads(text).get("right", ())
    return right


def _cost(row: SheddingInterval, readers: Sequence[_Reader]) -> IntervalCost:
    read = dict(row.by_stream)
    dropped = {(stream, query): records for stream, query, records in row.by_edge}
    # Queries of streams whose records are not stored have no kept part.
    ran = [
        reader
        for reader in readers
        if reader.overlaps(row) and all(stream in read for stream in reader.query.streams)
    ]
    if not ran:
        return IntervalCost(row)
    queries = [reader.query for reader in ran]
    kept = kept_by(dict(_parts(read, dropped, queries)), queries, read)
    losses = [
        IntervalRecords(query.id, reader.name, query.weight, query.floor, arrived, lost,
                  kept.queries[query.id])
        for reader in ran
        for query in [reader.query]
        for arrived, lost in [_records(query, read, dropped)]
        if lost
    ]  # fmt: skip
    losses.sort(key=lambda cost: (cost.kept, cost.name))
    return IntervalCost(row, kept.quality_lost, len(losses), tuple(losses[:MOST_QUERIES]))


def _parts(
    read: Mapping[int, int], dropped: Mapping[Edge, int], queries: Sequence[SheddingQuery]
) -> Iterator[tuple[Edge, float]]:
    """Yield the part of a stream's records that was kept up to each edge with drops."""
    for edge in [*((stream, INPUT) for stream in read), *_edges(queries)]:
        lost = _lost(edge, dropped)
        if lost and read.get(edge[0]):
            yield edge, max(0.0, 1 - lost / read[edge[0]])


def _edges(queries: Sequence[SheddingQuery]) -> Iterator[Edge]:
    for query in queries:
        yield from ((stream, query.id) for stream in query.streams)


def _lost(edge: Edge, dropped: Mapping[Edge, int]) -> int:
    """Return the records that were dropped up to an edge: of those, an input edge drops first."""
    at_input = dropped.get((edge[0], INPUT), 0)
    return at_input if edge[1] == INPUT else at_input + dropped.get(edge, 0)


def _records(
    query: SheddingQuery, read: Mapping[int, int], dropped: Mapping[Edge, int]
) -> tuple[int, int]:
    """Return the records of a query's streams, and those that did not reach it."""
    arrived = sum(read[stream] for stream in query.streams)
    lost = sum(_lost((stream, query.id), dropped) for stream in query.streams)
    return arrived, min(arrived, lost)
