"""Streams of a cluster: lists with filters, and one stream by id or name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from redis.exceptions import RedisError

from controlplane.catalog.computations import schema_of
from controlplane.catalog.drop_rules import drop_rules_by_stream
from controlplane.connections import redis_client
from controlplane.errors import NotFound
from controlplane.models import Cluster, Drop, QueryStream, Stream
from controlplane.models.query import LIVE_STATES
from controlplane.pagination.listing import (
    Filters,
    Listing,
    choice_filter,
    text_filter,
    whole_filter,
)
from controlplane.pagination.lookup import row_by
from controlplane.wire import dead_letters
from controlplane.wire.schema import StreamSchema

ORDERS = ("name", "-rate", "rate", "-queries", "queries", "split")


@dataclass(frozen=True)
class StreamFilters(Filters):
    """Filters of the list; order is one of ORDERS."""

    text: str = text_filter("q")
    split: int | None = whole_filter("split")
    order: str = choice_filter("order", lambda: ORDERS, "name")


@dataclass(frozen=True)
class StreamRow:
    """A stream with its number of live readers, its drop rules and its dead letters.

    `dead`: how many records ever became dead letters, by reason; None while Redis does not answer.
    """

    stream: Stream
    queries: int
    drops: tuple[Drop, ...] = ()
    dead: Mapping[str, int] | None = None

    @property
    def schema(self) -> StreamSchema | None:
        """Return the schema of the stream, None if it has none yet."""
        return schema_of(self.stream.schema)

    @property
    def dead_records(self) -> int:
        """Return the total number of records that became dead letters."""
        return sum((self.dead or {}).values())


def streams_listing(cluster: Cluster, filters: StreamFilters) -> Listing[Stream, StreamRow]:
    """Return the streams of a cluster in the order of the filters."""
    streams = Stream.objects.filter(cluster=cluster)
    if filters.text:
        streams = streams.filter(Q(name__icontains=filters.text) | Q(title__icontains=filters.text))
    if filters.split is not None:
        streams = streams.filter(split=filters.split)
    if "queries" in filters.order:
        streams = streams.annotate(query_count=_live_readers())
    streams = streams.annotate(shown_rate=Coalesce("rate", "declared_rate", 0.0))
    column = filters.order.replace("queries", "query_count").replace("rate", "shown_rate")
    return Listing(streams, (column, "pk"), rows_of_streams, filters)


def rows_of_streams(streams: Sequence[Stream]) -> list[StreamRow]:
    """Return the rows of streams; readers are counted for these streams only."""
    read = QueryStream.objects.filter(stream__in=[stream.pk for stream in streams])
    # Counted, not filtered: or SQLite begins at all live queries of the site.
    live = Count("id", filter=Q(query__state__in=LIVE_STATES))
    counts = dict(read.order_by().values("stream").annotate(n=live).values_list("stream", "n"))
    drops = drop_rules_by_stream([stream.pk for stream in streams])
    dead = _dead_counts(streams)
    return [
        StreamRow(
            stream,
            counts.get(stream.pk, 0),
            tuple(drops.get(stream.pk, ())),
            None if dead is None else dead.get(stream.pk, {}),
        )
        for stream in streams
    ]


def _dead_counts(streams: Sequence[Stream]) -> dict[int, dict[str, int]] | None:
    """Return the counts of dead letters by stream and reason, empty if Redis does not respond."""
    clusters = Cluster.objects.filter(pk__in={stream.cluster_id for stream in streams})
    counts: dict[int, dict[str, int]] = {}
    try:
        for slug in clusters.values_list("slug", flat=True):
            for stream, reasons in dead_letters.read_counts(redis_client(), slug).items():
                counts[stream] = {str(reason): count for reason, count in reasons.items()}
    except RedisError:
        return None
    return counts


def kind_text(schema: StreamSchema | None, name: str) -> str:
    """Return the kind of a column in queries as text, or the columns of its fields."""
    kinds = {} if schema is None else schema.kinds
    inner = [f"{other} {kind}" for other, kind in kinds.items() if other.startswith(f"{name}.")]
    return str(kinds.get(name, ", ".join(inner) or "not read"))


def stream_by_id(cluster: Cluster, pk: int) -> StreamRow:
    """Return a stream of the cluster; raises `NotFound`."""
    return rows_of_streams([row_by(cluster.streams, "stream", pk=pk)])[0]


def stream_by_key(cluster: Cluster, key: str) -> Stream:
    """Return a stream of the cluster by its id, or else by its name; raises `NotFound`."""
    streams = Stream.objects.filter(cluster=cluster).select_related("cluster")
    # Ids of more digits than the column holds would be an error of the database.
    by_id = streams.filter(pk=int(key)).first() if re.fullmatch("[0-9]{1,18}", key) else None
    stream = by_id or streams.filter(name=key).first()
    if stream is None:
        raise NotFound("stream", key)
    return stream


def _live_readers() -> Any:
    readers = (
        QueryStream.objects.filter(stream=OuterRef("pk"), query__state__in=LIVE_STATES)
        .order_by()
        .values("stream")
        .annotate(n=Count("id"))
        .values("n")
    )
    return Coalesce(Subquery(readers), 0)
