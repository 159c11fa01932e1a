"""The windows of which drop rules leave too little for an estimate.

What a window keeps follows from its own state (`wire.aggregates.sampling`) where each record had a
chance to be kept. It does not where a rule dropped every record, where windows of another length
were dropped, and where the sample of a window left no record at risk: of these windows the counts
by event time (`results.edge_periods`) show that records were dropped.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from controlplane.models import Query
from controlplane.results.edge_periods import drops_between
from controlplane.wire.drop_counts import OTHERS
from controlplane.wire.query import Window

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
