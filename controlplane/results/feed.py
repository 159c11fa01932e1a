"""Change feed of a query: changed windows in the order of `seq`, and windows that became final.

A window that changed several times is in the feed once, as it is now. No follower misses one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from controlplane.models import Cluster, Query
from controlplane.pagination.cursors import Cursor, Number
from controlplane.results.filters import WindowState
from controlplane.results.pages import result_columns
from controlplane.results.sampled import without_unknown
from controlplane.results.values import KeyedWindow, RawWindow, window_row
from controlplane.results.windows import (
    Finality,
    WindowRange,
    changed_windows,
    finality_of,
    newest_seq,
    read_windows,
)
from controlplane.wire.results.places import start_bytes

# Windows of each kind of event that are read together.
MOST: Final = 500
_CURSOR: Final = Cursor[tuple[int, bytes]](tuple[Number, bytes])
# Bytes after those of every key.
_AFTER: Final = b"\xff"


@dataclass(frozen=True, slots=True)
class FeedPlace:
    """The position of a follower: the last `seq`, and the place of the last final window."""

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

    kind: changed (the window as it is now, maybe a final one that was corrected), final, incomplete
    (a window), ended (nothing more will come).
    """

    kind: str
    place: FeedPlace
    window: KeyedWindow | None = None


def feed_start(cluster: Cluster, query: Query) -> FeedPlace:
    """Return the position of a new follower."""
    # The number first: a change in between is an event.
    number, finality = newest_seq(cluster.slug), finality_of(query.pk)
    if finality.is_closed:
        newest = read_windows(WindowRange(query.pk, limit=1), finality)
        return FeedPlace(number, newest[0].place if newest else b"")
    final_ms = finality.final_ms
    return FeedPlace(number, b"" if final_ms is None else start_bytes(final_ms) + _AFTER)


def feed_events(
    cluster: Cluster, query: Query, place: FeedPlace, *, is_final_only: bool = False
) -> tuple[list[FeedEvent], FeedPlace]:
    """Return the events after a position, and the position after them."""
    newest, finality = newest_seq(cluster.slug), finality_of(query.pk)
    number, events = newest, []
    if not is_final_only:
        changed = changed_windows(query.pk, place.number, MOST, finality)
        # A page that is full ends at its last change; otherwise all until `newest` was read.
        number = max([seq for seq, _ in changed], default=newest)
        number = number if len(changed) == MOST else max(number, newest)
        seqs = {window.place: seq for seq, window in changed}
        # A final window is here if it was corrected after its event.
        windows = [window for _, window in changed
                   if window.state is WindowState.OPEN or window.place <= place.final]  # fmt: skip
        events = [
            FeedEvent("changed", replace(place, number=seqs[raw.place]), window)
            for raw, window in zip(windows, _shown(query, windows), strict=True)
        ]
    after = FeedPlace(number, place.final)
    events += _final(query, after, finality)
    if not events and finality.is_closed and query_is_over(query):
        events.append(FeedEvent("ended", after))
    last = events[-1].place if events and events[-1].kind != "changed" else after
    return events, last


def _final(query: Query, place: FeedPlace, finality: Finality) -> list[FeedEvent]:
    """Return the windows that do not change any more and are after a position."""
    last_ms = finality.final_ms
    if last_ms is None and not finality.is_closed:
        return []
    wanted = WindowRange(query.pk, after=place.final, limit=MOST, newest_first=False)
    if last_ms is not None and not finality.is_closed:
        wanted = replace(wanted, last_ms=last_ms)
    rows = read_windows(wanted, finality)
    return [
        FeedEvent(str(window.state), replace(place, final=row.place), window)
        for row, window in zip(rows, _shown(query, rows), strict=True)
    ]


def event_row(event: FeedEvent) -> dict[str, Any]:
    """Return an event as JSON values."""
    return {} if event.window is None else window_row(event.window)


def _shown(query: Query, windows: Sequence[RawWindow]) -> list[KeyedWindow]:
    if not windows:
        return []
    names = result_columns(query)
    return without_unknown(query, names, [names.shown(window) for window in windows])


def query_is_over(query: Query) -> bool:
    """Return whether a query has ended."""
    state = Query.objects.filter(pk=query.pk).values_list("state", flat=True).first()
    return state not in (Query.State.PENDING, Query.State.RUNNING, Query.State.ENDING)
