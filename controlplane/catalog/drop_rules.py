"""Drop rules of streams and queries."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from django.db.models import F, QuerySet

from controlplane.models import Drop, Stream
from controlplane.wire.routing.drop_rules import ALWAYS


def drop_rules_of(stream: Stream) -> QuerySet[Drop]:
    """Return the drop rules of a stream: that of its input first, then by query name."""
    drops = Drop.objects.filter(stream=stream).select_related("stream", "query")
    return drops.order_by(F("query__name").asc(nulls_first=True), "id")


def drop_rules_by_stream(ids: Iterable[int]) -> Mapping[int, Sequence[Drop]]:
    """Return the drop rules of streams by stream id, each stream's input first."""
    rows = Drop.objects.filter(stream__in=ids).order_by(F("query_id").asc(nulls_first=True))
    return _rows_by(rows, "stream_id")


def drop_rules_by_query(ids: Iterable[int]) -> Mapping[int, Sequence[Drop]]:
    """Return the drop rules on the edges to queries, by query id."""
    return _rows_by(Drop.objects.filter(query__in=ids).order_by("id"), "query_id")


def _rows_by(rows: QuerySet[Drop], column: str) -> Mapping[int, Sequence[Drop]]:
    drops: dict[int, list[Drop]] = defaultdict(list)
    for drop in rows.select_related("stream", "query"):
        drops[getattr(drop, column)].append(drop)
    return drops


def moment_of(since_ms: int) -> datetime | None:
    """Return the event time of a step; None for always, or outside of the calendar."""
    if since_ms == ALWAYS:
        return None
    try:
        return datetime.fromtimestamp(since_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
