"""Counts of dropped records by event time: in which windows edges dropped any, and how.

They show of which windows too little is known for an estimate. A batch counts what it drops itself,
so its counts are the same in every replay.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.routing.drop_rules import INPUT, DropRule

# Lengths of periods of event time (s): the shortest one with few enough periods is used.
PERIODS_S: Final = (10, 60, 600, 3_600, 86_400)
# Periods of one edge that a process reports per batch; earlier ones are left out.
MAX_PERIODS: Final = 12
# Edges to queries that a process reports per batch: those that drop the most.
MAX_EDGES: Final = 256
# In place of a query: the edges of a stream without counts of their own.
OTHERS: Final = -1
# Windows in the counts of a rule that drops every record: none is left to stand for them.
EVERY_RECORD: Final = (0, 1)
_MOST_OFFSETS: Final = 4_096

Int64s = NDArray[np.int64]


class DropCount(NamedTuple):
    """The records of an edge in a period of event time of `seconds` that starts at `start_s`.

    `query`: `INPUT` for the input edge of the stream, `OTHERS` for several edges. `window_ms`,
    `slide_ms`: of the rule that dropped whole windows, 0 for random samples, or `EVERY_RECORD`.
    """

    stream: int
    query: int
    window_ms: int
    slide_ms: int
    start_s: int
    seconds: int
    dropped: int


class CountedEdge(NamedTuple):
    """An edge, with the windows of the rule that drops whole windows: see `DropCount`."""

    stream: int
    query: int
    window_ms: int = 0
    slide_ms: int = 0


@dataclass
class DropCounter:
    """Counts the dropped records of one batch in one process, by edge and the shortest period."""

    dropped: dict[CountedEdge, Counter[int]] = field(default_factory=dict)

    def drop(self, stream: int, query: int, rule: DropRule, periods: Mapping[int, int]) -> None:
        """Count records that a rule drops on an edge, by `periods_of`."""
        if periods:
            windows = rule.window_ms, rule.slide_ms
            if not rule.window_ms and any(share == 1 for _, share in rule.steps):
                windows = EVERY_RECORD
            edge = CountedEdge(stream, query, *windows)
            self.dropped.setdefault(edge, Counter()).update(periods)

    def take(self, other: "DropCounter") -> None:
        """Add the counts of another part of the batch."""
        for edge, periods in other.dropped.items():
            self.dropped.setdefault(edge, Counter()).update(periods)

    def rows(self) -> list[list[int]]:
        """Return the counts as reports have them: the fields of `DropCount`, a bounded number."""
        inputs = [edge for edge in self.dropped if edge.query == INPUT]
        queries = [edge for edge in self.dropped if edge.query != INPUT]
        queries.sort(key=lambda edge: (-self.dropped[edge].total(), edge))
        others: dict[CountedEdge, Counter[int]] = {}
        for edge in queries[MAX_EDGES:]:
            merged = others.setdefault(edge._replace(query=OTHERS), Counter())
            merged.update(self.dropped[edge])
        dropped = {**self.dropped, **others}
        reported = sorted({*inputs, *queries[:MAX_EDGES], *others})
        return [list(row) for edge in reported for row in _rows(edge, dropped[edge])]


def periods_of(ts_ms: Int64s) -> Counter[int]:
    """Return how many records are in each of the shortest periods, by the number of the period."""
    numbers = np.asarray(ts_ms) // (PERIODS_S[0] * 1000)
    if not len(numbers):
        return Counter()
    low, high = int(numbers.min()), int(numbers.max())
    if high - low < _MOST_OFFSETS:
        counts = np.bincount(numbers - low)
        places = np.flatnonzero(counts)
        pairs = zip((places + low).tolist(), counts[places].tolist(), strict=True)
    else:
        distinct, counts = np.unique(numbers, return_counts=True)
        pairs = zip(distinct.tolist(), counts.tolist(), strict=True)
    return Counter(dict(pairs))


def _rows(edge: CountedEdge, dropped: Counter[int]) -> Iterator[DropCount]:
    seconds = PERIODS_S[-1]
    for some in PERIODS_S:
        if len({number * PERIODS_S[0] // some for number in dropped}) <= MAX_PERIODS:
            seconds = some
            break
    counts: Counter[int] = Counter()
    for number, records in dropped.items():
        counts[number * PERIODS_S[0] // seconds * seconds] += records
    for start in sorted(counts)[-MAX_PERIODS:]:
        yield DropCount(*edge, start, seconds, counts[start])


def merged(reports: Iterable[Sequence[Sequence[Any]]]) -> list[list[int]]:
    """Return the counts of several processes, each edge and period once."""
    totals: Counter[tuple[int, ...]] = Counter()
    for rows in reports:
        for *edge, dropped in rows:
            totals[tuple(edge)] += dropped
    return [[*edge, total] for edge, total in sorted(totals.items())]
