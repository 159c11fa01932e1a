"""Streams of a cluster: lists with filters, and one stream by id or name."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from redis.exceptions import RedisError

from controlplane.catalog.columns.streams import COLUMNS
from controlplane.catalog.computations import schema_of
from controlplane.catalog.drop_rules import drop_rules_by_stream
from controlplane.catalog.names import is_id
from controlplane.catalog.split_reading import shares_of
from controlplane.connections import redis_client
from controlplane.errors import Away, Conflict, NotFound
from controlplane.models import Cluster, Drop, Sink, Stream
from controlplane.models.sink import STREAM_KIND
from controlplane.pagination.columns import order_names, orders_of
from controlplane.pagination.filter_text import MAX_LENGTH
from controlplane.pagination.listing import (
    Filters,
    Listing,
    choice_filter,
    selected,
    text_filter,
    whole_filter,
)
from controlplane.pagination.lookup import row_by
from controlplane.pagination.pages import MAX_DIGITS
from controlplane.telemetry.arrivals import newest_lags
from controlplane.telemetry.sources import source_statuses
from controlplane.telemetry.time_series import latest_values
from controlplane.wire import dead_letters
from controlplane.wire.schema import StreamSchema

_ORDERS: Final = orders_of(COLUMNS)


@dataclass(frozen=True)
class StreamFilters(Filters):
    """Filters of the list; order is one of the columns', filter a text with their terms."""

    text: str = text_filter("q")
    split: int | None = whole_filter("split")
    order: str = choice_filter("order", lambda: order_names(COLUMNS), "name")
    filter: str = text_filter("filter", MAX_LENGTH)


@dataclass(frozen=True)
class StreamListRow:
    """A stream with its drop rules and its dead letters.

    `dead`: how many records ever became dead letters, by reason; None while Redis does not answer.
    `splits`: the split nodes that read it, or a partition of its source; `split_latency_ms`: how
    long records wait there at most, by the newest sample; `unread`,
    `lag_s`: its unread records, and how far (s) it is behind them; None while they are not known.
    """

    stream: Stream
    drops: tuple[Drop, ...] = ()
    dead: Mapping[str, int] | None = None
    splits: Sequence[int] = ()
    split_latency_ms: float | None = None
    unread: float | None = None
    lag_s: float | None = None

    @property
    def queries(self) -> int:
        """Return the number of live queries that read it."""
        return self.stream.reader_count

    @property
    def bytes_per_s(self) -> float:
        """Return the bytes that arrive in the log, by the size of the newest records."""
        return (self.stream.rate or 0.0) * self.stream.record_bytes

    @property
    def schema(self) -> StreamSchema | None:
        """Return the schema of the stream, None if it has none yet."""
        return schema_of(self.stream.schema)

    @property
    def dead_records(self) -> int:
        """Return the total number of records that became dead letters."""
        return sum((self.dead or {}).values())


def streams_listing(cluster: Cluster, filters: StreamFilters) -> Listing[Stream, StreamListRow]:
    """Return the streams of a cluster in the order of the filters. Raises `BadFilter`."""
    streams = Stream.objects.filter(cluster=cluster)
    streams = streams.annotate(
        shown_rate=Coalesce("rate", "declared_rate", 0.0),
        shown_bytes=Coalesce("rate", 0.0) * F("record_bytes"),
    )
    streams = _with_counts(streams, filters.order)
    streams = selected(streams, filters, COLUMNS, _named, cluster)
    sign = "-" if filters.order.startswith("-") else ""
    column = f"{sign}{_ORDERS[filters.order.removeprefix('-')]}"
    return Listing(streams, (column, "pk"), rows_of_streams, filters)


def _with_counts(streams: QuerySet[Stream], order: str) -> QuerySet[Stream]:
    """Return the streams with the number of drop rules, which only their order uses.

    A cursor needs the value of an order.
    """
    is_order = _ORDERS[order.removeprefix("-")] == "drop_count"
    return streams.annotate(drop_count=_drop_rules()) if is_order else streams


def _named(word: str) -> Q:
    return Q(name__icontains=word) | Q(title__icontains=word)


def rows_of_streams(streams: Sequence[Stream]) -> list[StreamListRow]:
    """Return the rows of streams."""
    drops = drop_rules_by_stream([stream.pk for stream in streams])
    dead = _dead_counts(streams)
    readings = _readings(streams)
    return [
        StreamListRow(
            stream,
            tuple(drops.get(stream.pk, ())),
            None if dead is None else dead.get(stream.pk, {}),
            *readings[stream.pk],
        )
        for stream in streams
    ]


def _readings(
    streams: Sequence[Stream],
) -> dict[int, tuple[Sequence[int], float | None, float | None, float | None]]:
    """Return the last fields of the rows of streams, by id."""
    readings = {}
    for cluster in Cluster.objects.filter(pk__in={stream.cluster_id for stream in streams}):
        own = [stream for stream in streams if stream.cluster_id == cluster.pk]
        points = newest_lags(cluster, [stream.pk for stream in own])
        behind = {pk: (point.unread, point.seconds) for pk, point in points.items()}
        parts: dict[int, Mapping[int, float]] = {}
        with suppress(Away):
            for pk, status in source_statuses(cluster.slug, own).items():
                behind[pk], parts[pk] = (float(status.unread), status.lag_s), status.parts
        values = (latest_values(cluster) or {}).get("split_latency") or ()
        for pk, shares in shares_of(cluster, own, parts).items():
            known = [v for split in shares for v in values[split : split + 1] if v is not None]
            readings[pk] = sorted(shares), max(known, default=None), *behind.get(pk, (None, None))
    return readings


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


def stream_by_id(cluster: Cluster, pk: int) -> StreamListRow:
    """Return a stream of the cluster; raises `NotFound`."""
    return rows_of_streams([row_by(cluster.streams, "stream", pk=pk)])[0]


def stream_by_key(cluster: Cluster, key: str) -> Stream:
    """Return a stream of the cluster by its id, if the key has digits only, or by its name.

    Raises `NotFound`, and `Conflict` (ambiguous) for the id of a stream that is another's name.
    """
    named = Q(name=key)
    # Ids of more digits than the column holds would be an error of the database.
    if is_id(key) and len(key) <= MAX_DIGITS:
        named |= Q(pk=int(key))
    streams = list(Stream.objects.filter(named, cluster=cluster).select_related("cluster"))
    if not streams:
        raise NotFound("stream", key)
    if len(streams) > 1:
        text = f"{key} is the id of a stream and the name of another: use another key of either"
        raise Conflict("ambiguous", text, {"streams": {row.pk: row.name for row in streams}})
    return streams[0]


def _drop_rules() -> Any:
    rules = Drop.objects.filter(stream=OuterRef("pk")).order_by().values("stream")
    return Coalesce(Subquery(rules.annotate(n=Count("id")).values("n")), 0)


def sinks_into(stream: Stream) -> list[str]:
    """Return the sinks that write to a stream, as query/sink."""
    sinks = Sink.objects.filter(
        query__cluster=stream.cluster_id, kind=STREAM_KIND, settings__stream=stream.name
    )
    names = sinks.order_by("query__name", "name").values_list("query__name", "name")
    return [f"{query}/{sink}" for query, sink in names]
