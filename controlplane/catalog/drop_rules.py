"""What the arcs of a stream drop, as people read it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from django.db.models import F, QuerySet

from controlplane.models import Drop, Stream
from controlplane.wire.shedding import ALWAYS, INPUT


def drop_rules_of(stream: Stream) -> QuerySet[Drop]:
    """Return the drops of a stream's arcs: the input arc first, then by the query's name."""
    drops = Drop.objects.filter(stream=stream).select_related("stream", "query")
    return drops.order_by(F("query__name").asc(nulls_first=True), "id")


def drop_rules_by_stream(ids: Iterable[int]) -> Mapping[int, Sequence[Drop]]:
    """Return the drops of the arcs of some streams, each stream's input arc first."""
    drops: dict[int, list[Drop]] = defaultdict(list)
    rows = Drop.objects.filter(stream__in=ids).select_related("stream", "query")
    for drop in rows.order_by(F("query_id").asc(nulls_first=True)):
        drops[drop.stream_id].append(drop)
    return drops


def drop_rules_by_query(ids: Iterable[int]) -> Mapping[int, Sequence[Drop]]:
    """Return the drops on the arcs to some queries."""
    drops: dict[int, list[Drop]] = defaultdict(list)
    rows = Drop.objects.filter(query__in=ids).select_related("stream", "query")
    for drop in rows.order_by("id"):
        drops[drop.query_id or INPUT].append(drop)
    return drops


def moment_of(since_ms: int) -> datetime | None:
    """Return the event time of a step; None for always, or for a time that no calendar has."""
    if since_ms == ALWAYS:
        return None
    try:
        return datetime.fromtimestamp(since_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
