"""Pages of windows, merged from Redis and the archive.

Redis is read first: a window that has left it by then is in the archive. A window that is in both
is shown once, as the archive has it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from controlplane.catalog.computations import text_of
from controlplane.catalog.queries import computed_by, names_of_streams
from controlplane.connections import redis_client
from controlplane.errors import Conflict
from controlplane.models import Cluster, Query
from controlplane.pagination.cursors import Slice
from controlplane.results.archive import windows as archive
from controlplane.results.archive.windows import Archived, WindowRange
from controlplane.results.filters import (
    CURSOR,
    MAX_WINDOWS,
    WindowFilters,
    WindowState,
    key_values,
)
from controlplane.results.sampled import without_unknown
from controlplane.results.values import KeyedWindow, RawWindow, ResultColumns
from controlplane.wire.aggregates.sampling import Sampled
from controlplane.wire.query import Computation
from controlplane.wire.results import final_windows
from controlplane.wire.results.assembly import StoredWindow
from controlplane.wire.results.places import START_BYTES, start_bytes
from controlplane.wire.results.read import Range, WindowsPage, bytes_of_key, is_before, read_page


def keyed_windows(cluster: Cluster, query: Query, limit: int = 200) -> list[KeyedWindow]:
    """Return the newest windows of a query, newest first. Raises as `windows_page`."""
    keyed_windows: list[KeyedWindow] = []
    wanted = WindowFilters(limit=min(limit, MAX_WINDOWS))
    while len(keyed_windows) < limit:
        page, after = _page(cluster, query, wanted)
        keyed_windows += page
        if not after:
            break
        wanted = replace(wanted, after=after)
    return keyed_windows[:limit]


def windows_page(cluster: Cluster, query: Query, wanted: WindowFilters) -> Slice[KeyedWindow]:
    """Return a page of the windows of a query, in the order of starts, then of keys.

    Raises `Conflict` (unreadable) where the query calls a function that is gone and nothing is in
    the archive; `Invalid` for a key that the query's results cannot have; redis.RedisError.
    """
    windows, after = _page(cluster, query, wanted)
    return Slice(windows, CURSOR.text(after) if after else "")


def _page(cluster: Cluster, query: Query, wanted: WindowFilters) -> tuple[list[KeyedWindow], bytes]:
    computation, error = None, None
    try:
        computation = computed_by(query)
    except Conflict as conflict:
        error = conflict
    streams = names_of_streams(query)
    key = None
    if computation is not None:
        key = key_values(wanted.key, computation, streams)
    reader = _Reader(cluster, query, wanted, computation, key)
    windows, after = reader.page()
    if error is not None and not windows:
        raise error
    names = ResultColumns(text_of(query), computation, streams)
    shown = [names.shown(window) for window in windows]
    return without_unknown(query, names, shown), after


@dataclass(frozen=True)
class _Reader:
    """Reads one page of one query."""

    cluster: Cluster
    query: Query
    wanted: WindowFilters
    computation: Computation | None
    key: Sequence[object] | None

    def page(self) -> tuple[list[RawWindow], bytes]:
        """Return the windows in order, and the place after which the next page begins."""
        stored, edge = self._stored()
        archived, archive_edge = self._archived()
        known = {window.place for window in archived}
        windows = [*archived, *(raw for raw in stored if raw.place not in known)]
        windows.sort(key=lambda window: window.place, reverse=self.wanted.newest_first)
        edges = [raw for raw in (edge, archive_edge) if raw]
        if edges:
            # After the nearest edge, one of both has windows that were not read.
            nearest = max(edges) if self.wanted.newest_first else min(edges)
            newest_first = self.wanted.newest_first
            windows = [raw for raw in windows if is_before(raw.place, nearest, newest_first)]
        limit = self.wanted.limit
        if len(windows) > limit:
            return windows[:limit], windows[limit - 1].place
        return windows, nearest if edges else b""

    def _stored(self) -> tuple[list[RawWindow], bytes]:
        """Return the windows in Redis, and the place after which there are more."""
        if self.computation is None:
            return [], b""
        client, slug, pk = redis_client(), self.cluster.slug, self.query.pk
        wanted = self.wanted
        first, last = wanted.first_ms, wanted.last_ms
        if wanted.state is not None:
            final = final_windows.frozen_until(client, slug, pk)
            if wanted.state is WindowState.OPEN:
                first = first if final is None else max(first, final + 1)
            else:
                last = min(last, first - 1 if final is None else final)
        if first > last:
            return [], b""
        requested = Range(first, last, self.key, wanted.after, wanted.limit, wanted.newest_first)
        page = read_page(client, slug, pk, self.computation, requested)
        windows = [raw_of_stored(page, window) for window in page.windows]
        return [raw for raw in windows if wanted.state in (None, raw.state)], page.next

    def _archived(self) -> tuple[list[RawWindow], bytes]:
        """Return the windows in the archive, and the place after which there are more."""
        wanted = self.wanted
        if wanted.state is WindowState.OPEN:
            return [], b""
        is_final = None if wanted.state is None else wanted.state is WindowState.FINAL
        least, stop = self._bounds()
        key = None
        if self.key is not None and self.computation is not None:
            key = bytes_of_key(self.computation, self.key)
        rows = archive.read(
            WindowRange(
                self.query.pk, least, stop, key, is_final, wanted.limit, wanted.newest_first
            )
        )
        edge = rows[-1].place if len(rows) == wanted.limit else b""
        return [raw_of_archived(window) for window in rows], edge

    def _bounds(self) -> tuple[bytes, bytes]:
        """Return the least place and the stop, from the cursor and the range."""
        wanted = self.wanted
        least, stop = start_bytes(wanted.first_ms), start_bytes(wanted.last_ms + 1)
        if not wanted.after:
            return least, stop
        by_start = self.key is not None or len(wanted.after) == START_BYTES
        after = wanted.after[:START_BYTES] if by_start else wanted.after
        if wanted.newest_first:
            return least, min(stop, after)
        if by_start:
            behind = (int.from_bytes(after, "big") + 1).to_bytes(START_BYTES, "big")
        else:
            behind = after + b"\x00"
        return max(least, behind), stop


def raw_of_stored(page: WindowsPage, window: StoredWindow) -> RawWindow:
    """Return a raw window of a page read from Redis."""
    state, final_at = WindowState.OPEN, None
    if page.is_frozen(window):
        final_at = page.final_at_ms
        state = WindowState.INCOMPLETE if final_at is None else WindowState.FINAL
    row = window.row
    key, values = list(row.key.values()), list(row.values.values())
    place, batch, errors = window.place, row.batch, row.errors
    return RawWindow(place, key, values, batch, state, final_at, errors, row.sampled)


def raw_of_archived(window: Archived) -> RawWindow:
    """Return a raw window read from the archive."""
    final_at = window.final_at_ms
    state = WindowState.INCOMPLETE if final_at is None else WindowState.FINAL
    values, sampled = window.values, None
    if values and isinstance(values[-1], Sampled):
        *values, sampled = values
    place, batch = window.place, window.batch
    return RawWindow(place, window.key, values, batch, state, final_at, sampled=sampled)
