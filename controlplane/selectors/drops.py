"""What the arcs of a stream drop, as people read it."""

from collections.abc import Iterable
from datetime import UTC, datetime

from django.db.models import F, QuerySet

from controlplane.models import Drop, Stream
from controlplane.wire.shedding import ALWAYS, INPUT


def drops_of(stream: Stream) -> QuerySet[Drop]:
    """Return the drops of a stream's arcs: the input arc first, then by the query's name."""
    found = Drop.objects.filter(stream=stream).select_related("stream", "query")
    return found.order_by(F("query__name").asc(nulls_first=True), "id")


def input_arc_first(drops: Iterable[Drop]) -> list[Drop]:
    """Return drops of one stream that were read with it: its input arc first."""
    return sorted(drops, key=lambda drop: drop.query_id or INPUT)


def moment_of(since_ms: int) -> datetime | None:
    """Return the event time of a step; None for always, or for a time that no calendar has."""
    if since_ms == ALWAYS:
        return None
    try:
        return datetime.fromtimestamp(since_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
