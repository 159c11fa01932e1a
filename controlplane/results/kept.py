"""The fraction of its records that a window keeps under drop rules.

Counts by event time (`results.edge_periods`) have the records that arrived for a stream and those
that its input edge and its edge to the query dropped. Within a period of counts, records are spread
evenly; where they were not counted, no rule dropped any, and their rate is that of the rest of the
window.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.models import Query
from controlplane.results.edge_periods import Counts, Ranges, counts_between, ranges_of
from controlplane.wire.drop_counts import OTHERS, PERIODS_S
from controlplane.wire.query import Window
from controlplane.wire.routing.drop_rules import INPUT


class Kept(NamedTuple):
    """The fraction of the records of a window that were kept, None if it was not counted.

    `is_random`: each record was dropped independently of the others.
    """

    fraction: float | None
    is_random: bool = True

    @property
    def is_exact(self) -> bool:
        """Return whether all records were kept."""
        return self.fraction == 1.0


EXACT: Final = Kept(1.0)
UNKNOWN: Final = Kept(None, is_random=False)


def kept_of_windows(query: Query, window: Window, starts_s: Iterable[float]) -> dict[float, Kept]:
    """Return what was kept of the windows of a query that start at these times (s).

    Windows that are absent kept all their records. Windows that a rule dropped whole have no
    results, and others of the same rule are exact.
    """
    starts = sorted(set(starts_s))
    if not starts:
        return {}
    streams = list(query.streams.values_list("pk", flat=True))
    counts = counts_between(streams, query.pk, starts[0], starts[-1] + window.size_ms / 1000)
    if counts is None:
        return dict.fromkeys(starts, UNKNOWN)
    if not counts:
        return {}
    return fractions(counts, ranges_of(streams), query.pk, window, starts)


def fractions(
    counts: Sequence[Counts],
    ranges: Mapping[int, Ranges],
    query: int,
    window: Window,
    starts_s: Sequence[float],
) -> dict[float, Kept]:
    """Return what was kept of windows, by their starts (s); absent ones kept all records."""
    edges = [
        _Edges.of([count for count in counts if count.stream == stream], query, window, of_stream)
        for stream, of_stream in ranges.items()
    ]
    result = {}
    for start in starts_s:
        parts = [edge.in_window(start, start + window.size_ms / 1000) for edge in edges]
        arrived, dropped = (sum(part[place] for part in parts) for place in (0, 1))
        if any(part.is_unknown for part in parts):
            result[start] = UNKNOWN
        elif dropped > 0:
            fraction = max(0.0, 1 - dropped / arrived) if arrived else 0.0
            result[start] = Kept(fraction, all(part.is_random for part in parts))
    return result


class _Part(NamedTuple):
    """The records of one stream in a window; `is_unknown`: some drops were not counted."""

    arrived: float
    dropped: float
    is_random: bool
    is_unknown: bool


class _Periods:
    """Numbers of records in periods of time (s), by the starts of the periods."""

    def __init__(self, counts: Sequence[Counts], records: Sequence[int]) -> None:
        order = np.argsort([count.start_s for count in counts], kind="stable")
        self.start: Floats = np.array([count.start_s for count in counts], np.float64)[order]
        self.stop: Floats = np.array([count.stop_s for count in counts], np.float64)[order]
        self.records: Floats = np.array(records, np.float64)[order]

    def within(self, start: float, stop: float) -> float:
        """Return the records from `start` to `stop`."""
        first = np.searchsorted(self.start, start - PERIODS_S[-1])
        last = np.searchsorted(self.start, stop)
        begin, end = self.start[first:last], self.stop[first:last]
        overlap = np.minimum(end, stop) - np.maximum(begin, start)
        return float((np.maximum(overlap, 0) / (end - begin)) @ self.records[first:last])


class _Edges(NamedTuple):
    """The counts of a stream on its way to one query.

    `dropped`: by random samples, `in_windows`: in windows of another length; `others`: on edges
    without counts of their own, of which the query's may be a part.
    """

    arrived: _Periods
    dropped: _Periods
    in_windows: _Periods
    others: _Periods
    ranges: Ranges

    @classmethod
    def of(cls, counts: Sequence[Counts], query: int, window: Window, ranges: Ranges) -> "_Edges":
        """Return the counts of a stream; those of windows of the query's own length are omitted."""
        own = window.size_ms, window.slide_ms
        dropped = [c for c in counts if c.query in (INPUT, query) and c.window_ms == 0]
        windows = [c for c in counts if c.query in (INPUT, query) and c.window_ms]
        windows = [c for c in windows if (c.window_ms, c.slide_ms) != own]
        others = [c for c in counts if c.query == OTHERS and (c.window_ms, c.slide_ms) != own]
        inputs = [c for c in dropped if c.query == INPUT]
        lost = [_Periods(some, [c.dropped for c in some]) for some in (dropped, windows, others)]
        arrived = _Periods(inputs, [c.arrived for c in inputs])
        return cls(arrived, lost[0], lost[1], lost[2], ranges)

    def in_window(self, start: float, stop: float) -> _Part:
        """Return the records from `start` to `stop` (s)."""
        arrived = self.arrived.within(start, stop)
        dropped = self.dropped.within(start, stop)
        in_windows = self.in_windows.within(start, stop)
        ranges, newest = self.ranges.ranges, self.ranges.newest_s
        counted = sum(_overlap(begin, end, start, stop) for begin, end in ranges)
        known = sum(_overlap(begin, min(end, newest), start, stop) for begin, end in ranges)
        if known:
            arrived += arrived / known * (stop - start - counted)
        is_unknown = self.others.within(start, stop) > 0
        return _Part(arrived, dropped + in_windows, in_windows == 0, is_unknown)


def _overlap(begin: float, end: float, start: float, stop: float) -> float:
    return max(0.0, min(end, stop) - max(begin, start))
