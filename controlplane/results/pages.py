"""Pages of the windows of a query."""

from dataclasses import replace

from controlplane.catalog.computations import text_of
from controlplane.catalog.queries import computed_by, names_of_streams
from controlplane.errors import Conflict
from controlplane.models import Cluster, Query
from controlplane.pagination.cursors import Slice
from controlplane.results.filters import CURSOR, MAX_WINDOWS, WindowFilters, key_values
from controlplane.results.sampled import without_unknown
from controlplane.results.values import KeyedWindow, ResultColumns
from controlplane.results.windows import WindowRange, finality_of, read_windows
from controlplane.wire.aggregates.layout import ARROW
from controlplane.wire.results.places import key_bytes


def keyed_windows(cluster: Cluster, query: Query, limit: int = 200) -> list[KeyedWindow]:
    """Return the newest windows of a query, newest first. Raises as `windows_page`."""
    keyed_windows: list[KeyedWindow] = []
    wanted = WindowFilters(limit=min(limit, MAX_WINDOWS))
    while len(keyed_windows) < limit:
        page, after = _page(query, wanted)
        keyed_windows += page
        if not after:
            break
        wanted = replace(wanted, after=after)
    return keyed_windows[:limit]


def windows_page(cluster: Cluster, query: Query, wanted: WindowFilters) -> Slice[KeyedWindow]:
    """Return a page of the windows of a query, in the order of starts, then of keys.

    Raises `Conflict` (unreadable) without windows, or with a key, where the query calls a missing
    function; `Invalid` for a key that the query's results cannot have.
    """
    windows, after = _page(query, wanted)
    return Slice(windows, CURSOR.text(after) if after else "")


def _page(query: Query, wanted: WindowFilters) -> tuple[list[KeyedWindow], bytes]:
    names = result_columns(query)
    key = None
    if wanted.key:
        computation = computed_by(query)
        values = key_values(wanted.key, computation, names.streams) or []
        types = [ARROW[expression.kind] for _, expression in computation.key]
        key = key_bytes(values, types)
    finality = finality_of(query.pk)
    first, last = finality.starts_of(wanted.state)
    first, last = max(first, wanted.first_ms), min(last, wanted.last_ms)
    if first > last:
        return [], b""
    # One more than the page has: whether there are further windows.
    windows = read_windows(
        WindowRange(
            query.pk, first, last, key, wanted.after, wanted.limit + 1, wanted.newest_first
        ),
        finality,
    )
    if not windows:
        # A query that calls a missing function has no new windows: its results report why.
        computed_by(query)
    shown = [names.shown(window) for window in windows[: wanted.limit]]
    after = windows[wanted.limit - 1].place if len(windows) > wanted.limit else b""
    return without_unknown(query, names, shown), after


def result_columns(query: Query) -> ResultColumns:
    """Return the columns of a query's results, without kinds if it calls a missing function."""
    streams = names_of_streams(query)
    try:
        return ResultColumns(text_of(query), computed_by(query), streams)
    except Conflict:
        return ResultColumns(text_of(query), None, streams)
