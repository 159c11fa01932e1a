"""Windows of which drop rules leave too little for an estimate, shown as unknown.

What a window keeps follows from its own state (`wire.aggregates.sampling`) where each record had a
chance to be kept. It does not where a rule dropped every record, where windows of another length
were dropped, and where the sample of a window left no record at risk: of these windows the counts
by event time (`results.edge_periods`) show that records were dropped.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from controlplane.models import Query
from controlplane.results.edge_periods import drops_between
from controlplane.results.values import KeyedWindow, ResultColumns
from controlplane.wire.drop_counts import OTHERS
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


_RANDOM: Final = (0, 0)


class DroppedStarts(NamedTuple):
    """Starts (s) of windows with drops: `sampled` by random samples, `unknown` by other rules.

    Windows that a rule of their own length drops have no results, and others of it are exact.
    """

    sampled: frozenset[float]
    unknown: frozenset[float]


def dropped_starts(query: Query, window: Window, starts_s: Iterable[float]) -> DroppedStarts:
    """Return in which of the windows of a query that start at these times (s) edges dropped any."""
    starts, size_s = sorted(set(starts_s)), window.size_ms / 1000
    sampled: set[float] = set()
    unknown: set[float] = set()
    streams = list(query.streams.values_list("pk", flat=True))
    drops = drops_between(streams, query.pk, starts[0], starts[-1] + size_s) if starts else []
    for drop in drops:
        windows = drop.window_ms, drop.slide_ms
        if windows == (window.size_ms, window.slide_ms):
            continue
        is_sample = windows == _RANDOM and drop.query != OTHERS
        first = bisect_right(starts, drop.start_s - size_s)
        last = bisect_left(starts, drop.start_s + drop.seconds)
        (sampled if is_sample else unknown).update(starts[first:last])
    return DroppedStarts(frozenset(sampled), frozenset(unknown))
