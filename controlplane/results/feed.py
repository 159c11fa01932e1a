"""Change feed of a query: changed windows and newly final windows, in order.

Changes are published in a short feed in Redis that exists while it has followers; a slow follower
receives an event `gap`. Final windows are read from the archive in the order of places, in which
they are archived, so a follower misses none while the archive keeps it.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from controlplane.catalog.computations import text_of
from controlplane.catalog.queries import computed_by, names_of_streams
from controlplane.connections import redis_client
from controlplane.errors import Conflict, TryLater
from controlplane.models import Cluster, Query
from controlplane.pagination.cursors import Cursor, Number
from controlplane.results.archive import windows as archive
from controlplane.results.archive.windows import WindowRange
from controlplane.results.filters import WindowState
from controlplane.results.pages import raw_of_archived, raw_of_stored
from controlplane.results.sampled import without_unknown
from controlplane.results.values import KeyedWindow, RawWindow, ResultColumns, window_row
from controlplane.wire.results import feed, final_windows
from controlplane.wire.results.feed import FeedEntry
from controlplane.wire.results.places import place_of
from controlplane.wire.results.read import read_places

# Changed windows of one reading; a gap is reported for more.
MOST: Final = 500
_CURSOR: Final = Cursor[tuple[int, bytes]](tuple[Number, bytes])


@dataclass(frozen=True, slots=True)
class FeedPlace:
    """The position of a follower: the last feed entry, and the last archived window."""

    number: int
    final: bytes

    def __str__(self) -> str:
        return _CURSOR.text((self.number, self.final))

    @classmethod
    def read(cls, text: str) -> "FeedPlace":
        """Return the place of an event's id. Raises `Invalid`."""
        return cls(*_CURSOR.place(text, "Last-Event-ID"))


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """An event of the feed; `place` is the follower's position after it.

    kind: changed (the window as it is now), final, incomplete (a window), gap (changes were missed;
    no final window was), ended (nothing more will come).
    """

    kind: str
    place: FeedPlace
    window: KeyedWindow | None = None


def feed_start(cluster: Cluster, query: Query) -> FeedPlace:
    """Return the position of a new follower. Raises `TryLater` (too_many_followed)."""
    return FeedPlace(_follow(cluster, query), archive.newest_place(query.pk))


def feed_events(
    cluster: Cluster, query: Query, place: FeedPlace, *, is_final_only: bool = False
) -> tuple[list[FeedEvent], FeedPlace]:
    """Return the events after a position, and the position after them.

    Call it at least once a minute: a query without calls is no longer followed.
    """
    newest = _follow(cluster, query)
    look = _FeedReader(cluster, query, _names(query))
    events: list[FeedEvent] = []
    number = newest
    if not is_final_only:
        entries = feed.entries_after(redis_client(), cluster.slug, query.pk, place.number)
        number = entries[-1].number if entries else newest
        members = {member: None for entry in entries for member in entry.members or ()}
        places = list(dict.fromkeys(map(place_of, members)))
        is_missed = _is_missed(entries, place.number, newest)
        if is_missed or len(places) > MOST:
            events.append(FeedEvent("gap", replace(place, number=number)))
        events += look.changed(places[:MOST], place, number)
    events += look.archived(FeedPlace(number, place.final))
    if not events and _is_over(cluster, query):
        events.append(FeedEvent("ended", FeedPlace(number, place.final)))
    return events, events[-1].place if events else FeedPlace(number, place.final)


def _is_missed(entries: Sequence[FeedEntry], number: int, newest: int) -> bool:
    """Return True if entries after a number were trimmed or do not name the changed windows."""
    if not entries:
        # Redis may have been emptied: it then counts from the beginning.
        return newest != number
    return entries[0].number > number + 1 or any(entry.members is None for entry in entries)


def event_row(event: FeedEvent) -> dict[str, Any]:
    """Return an event as JSON values."""
    return {} if event.window is None else window_row(event.window)


@dataclass(frozen=True, slots=True)
class _FeedReader:
    cluster: Cluster
    query: Query
    names: ResultColumns

    def changed(self, places: Sequence[bytes], before: FeedPlace, number: int) -> list[FeedEvent]:
        """Return the windows at these places as they are now; those in the archive are final."""
        if self.names.computation is None or not places:
            return []
        page = read_places(
            redis_client(), self.cluster.slug, self.query.pk, self.names.computation, places
        )
        shown = self._shown([raw_of_stored(page, window) for window in page.windows])
        # A follower that is disconnected within them receives all of them again.
        events = [
            FeedEvent("changed", before, event)
            for event in shown
            if event.state is WindowState.OPEN
        ]
        if events:
            events[-1] = replace(events[-1], place=replace(before, number=number))
        return events

    def archived(self, place: FeedPlace) -> list[FeedEvent]:
        """Return the windows that were archived after a position."""
        least = place.final + b"\x00" if place.final else b""
        rows = archive.read(WindowRange(self.query.pk, least, limit=MOST, newest_first=False))
        shown = self._shown([raw_of_archived(row) for row in rows])
        events = []
        for row, window in zip(rows, shown, strict=True):
            events.append(FeedEvent(str(window.state), replace(place, final=row.place), window))
        return events

    def _shown(self, windows: Sequence[RawWindow]) -> list[KeyedWindow]:
        shown = [self.names.shown(window) for window in windows]
        return without_unknown(self.query, self.names, shown)


def _names(query: Query) -> ResultColumns:
    streams = names_of_streams(query)
    try:
        return ResultColumns(text_of(query), computed_by(query), streams)
    except Conflict:
        return ResultColumns(text_of(query), None, streams)


def _follow(cluster: Cluster, query: Query) -> int:
    try:
        return feed.follow(redis_client(), cluster.slug, query.pk, time.time_ns() // 1_000_000)
    except feed.TooManyFollowed:
        text = f"{feed.MAX_FOLLOWED} queries of this cluster are followed already"
        raise TryLater("too_many_followed", text, 60) from None


def _is_over(cluster: Cluster, query: Query) -> bool:
    state = Query.objects.filter(pk=query.pk).values_list("state", flat=True).first()
    if state in (Query.State.PENDING, Query.State.RUNNING, Query.State.ENDING):
        return False
    return query.pk not in final_windows.stored_queries(redis_client(), cluster.slug)
