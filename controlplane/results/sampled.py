"""Windows of which drop rules leave too little for an estimate, shown as unknown."""

from collections.abc import Sequence

from controlplane.models import Query
from controlplane.results.kept import dropped_starts
from controlplane.results.values import KeyedWindow, ResultColumns
from controlplane.wire.query import Window
from controlplane.wire.query_text import QueryText


def without_unknown(
    query: Query, names: ResultColumns, windows: Sequence[KeyedWindow]
) -> list[KeyedWindow]:
    """Return windows of a query, without fraction and estimates where too little is known.

    A window has its estimates from its own state, unless a rule left no record to stand for the
    dropped ones.
    """
    if not windows:
        return []
    starts = (window.start.timestamp() for window in windows)
    dropped = dropped_starts(query, _window_of(names.text), starts)
    result = []
    for window in windows:
        start = window.start.timestamp()
        if start in dropped.unknown or (start in dropped.sampled and window.kept == 1):
            window = window._replace(kept=None, estimates={})  # noqa: PLW2901
        result.append(window)
    return result


def _window_of(text: QueryText) -> Window:
    size_ms = round(text.window_s * 1000)
    return Window(size_ms, size_ms if text.slide_s is None else round(text.slide_s * 1000))
