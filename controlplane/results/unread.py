"""Results that retention deletes before a sink has written them: they are counted as lost."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.db.models import F

from controlplane.models import Sink
from controlplane.results.feed import FeedPlace
from controlplane.wire.results.places import START_BYTES, start_of

# Final results after what a sink has written, up to a place: others may not be due yet.
_COUNT: Final = """
SELECT count(*) FROM results_window AS item JOIN results_query AS owner USING (query_id)
WHERE item.query_id = %s AND item.start_ms >= %s AND item.start_ms <= owner.final_ms
  AND (item.start_ms, item.key) > (%s, %s) AND (item.start_ms, item.key) <= (%s, %s)
"""
_FIRST: Final = -(2**62)


class UnreadResults:
    """The positions of all sinks as they are at the beginning of a pass of retention."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._places: dict[int, dict[int, bytes]] = defaultdict(dict)
        for sink, query, text in Sink.objects.values_list("pk", "query_id", "position"):
            self._places[query][sink] = FeedPlace.read(text).final

    @property
    def queries(self) -> list[int]:
        """Return the queries that have sinks."""
        return list(self._places)

    def count(
        self, cursor: Any, query: int, last: tuple[int, bytes], first_ms: int = _FIRST
    ) -> dict[int, int]:
        """Return by sink how many unread results of a query start at `first_ms` up to a place."""
        lost = {}
        for sink, place in self._places.get(query, {}).items():
            start, key = (start_of(place), place[START_BYTES:]) if place else (_FIRST, b"")
            cursor.execute(_COUNT, [query, max(first_ms, start), start, key, *last])
            lost[sink] = int(cursor.fetchone()[0])
        return lost

    def store(self, lost: Mapping[int, int]) -> None:
        """Add to the counts of sinks."""
        for sink, count in lost.items():
            if count:
                Sink.objects.filter(pk=sink).update(lost=F("lost") + count, lost_at=self._now)
