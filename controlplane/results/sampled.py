"""Windows with the fraction of their records that was kept, and estimates over all records."""

from collections.abc import Sequence

from controlplane.models import Query
from controlplane.results.estimates import estimates_of
from controlplane.results.kept import EXACT, kept_of_windows
from controlplane.results.values import KeyedWindow, Names
from controlplane.wire.query import Window
from controlplane.wire.query_text import QueryText


def with_estimates(query: Query, names: Names, windows: Sequence[KeyedWindow]) -> list[KeyedWindow]:
    """Return windows of a query with what was kept of them, and estimates.

    Without estimates if the query calls a missing function.
    """
    if not windows:
        return []
    starts = (window.start.timestamp() for window in windows)
    kept = kept_of_windows(query, _window_of(names.text), starts)
    result = []
    for window in windows:
        own = kept.get(window.start.timestamp(), EXACT)
        if not own.is_exact:
            computation = names.computation
            estimates = estimates_of(computation, window.values, own) if computation else {}
            window = window._replace(kept=own.fraction, estimates=estimates)  # noqa: PLW2901
        result.append(window)
    return result


def _window_of(text: QueryText) -> Window:
    size_ms = round(text.window_s * 1000)
    return Window(size_ms, size_ms if text.slide_s is None else round(text.slide_s * 1000))
