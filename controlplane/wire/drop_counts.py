"""Counts of records by event time: those that arrive on edges with drop rules, and those dropped.

From them follows which fraction of its records a window keeps. A batch counts what it drops itself,
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
_MOST_OFFSETS: Final = 4_096

Int64s = NDArray[np.int64]


class DropCount(NamedTuple):
    """The records of an edge in a period of event time of `seconds` that starts at `start_s`.

    `query`: `INPUT` for the input edge of the stream, `OTHERS` for several edges. `window_ms`,
    `slide_ms`: of the rule that dropped whole windows, 0 for random samples. `arrived`: counted on
    input edges alone, in the count with windows of 0 ms.
    """

    stream: int
    query: int
    window_ms: int
    slide_ms: int
    start_s: int
    seconds: int
    arrived: int
    dropped: int


class CountedEdge(NamedTuple):
    """An edge, with the windows of the rule that drops whole windows: see `DropCount`."""

    stream: int
    query: int
    window_ms: int = 0
    slide_ms: int = 0


@dataclass
class DropCounter:
    """Counts the records of one batch in one process, by edge and the shortest period."""

    arrived: dict[CountedEdge, Counter[int]] = field(default_factory=dict)
    dropped: dict[CountedEdge, Counter[int]] = field(default_factory=dict)

    def arrive(self, stream: int, periods: Mapping[int, int]) -> None:
        """Count records that arrive on the input edge of a stream, by `periods_of`."""
        self.arrived.setdefault(CountedEdge(stream, INPUT), Counter()).update(periods)

    def drop(self, stream: int, query: int, rule: DropRule, periods: Mapping[int, int]) -> None:
        """Count records that a rule drops on an edge, by `periods_of`."""
        if periods:
            edge = CountedEdge(stream, query, rule.window_ms, rule.slide_ms)
            self.dropped.setdefault(edge, Counter()).update(periods)

    def take(self, other: "DropCounter") -> None:
        """Add the counts of another part of the batch."""
        for own, others in ((self.arrived, other.arrived), (self.dropped, other.dropped)):
            for edge, periods in others.items():
                own.setdefault(edge, Counter()).update(periods)

    def rows(self) -> list[list[int]]:
        """Return the counts as reports have them: the fields of `DropCount`, a bounded number."""
        inputs = {edge for edge in {*self.arrived, *self.dropped} if edge.query == INPUT}
        queries = [edge for edge in self.dropped if edge.query != INPUT]
        queries.sort(key=lambda edge: (-self.dropped[edge].total(), edge))
        others: dict[CountedEdge, Counter[int]] = {}
        for edge in queries[MAX_EDGES:]:
            merged = others.setdefault(edge._replace(query=OTHERS), Counter())
            merged.update(self.dropped[edge])
        dropped = {**self.dropped, **others}
        reported = sorted({*inputs, *queries[:MAX_EDGES], *others})
        return [
            list(row)
            for edge in reported
            for row in _rows(edge, self.arrived.get(edge, Counter()), dropped.get(edge, Counter()))
        ]


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


def _rows(edge: CountedEdge, arrived: Counter[int], dropped: Counter[int]) -> Iterator[DropCount]:
    numbers = {*arrived, *dropped}
    seconds = PERIODS_S[-1]
    for some in PERIODS_S:
        if len({number * PERIODS_S[0] // some for number in numbers}) <= MAX_PERIODS:
            seconds = some
            break
    counts: dict[int, list[int]] = {}
    for place, periods in enumerate((arrived, dropped)):
        for number, records in periods.items():
            start = number * PERIODS_S[0] // seconds * seconds
            counts.setdefault(start, [0, 0])[place] += records
    for start in sorted(counts)[-MAX_PERIODS:]:
        yield DropCount(*edge, start, seconds, *counts[start])


def merged(reports: Iterable[Sequence[Sequence[Any]]]) -> list[list[int]]:
    """Return the counts of several processes, each edge and period once."""
    totals: dict[tuple[int, ...], list[int]] = {}
    for rows in reports:
        for row in rows:
            total = totals.setdefault(tuple(row[:-2]), [0, 0])
            total[0] += row[-2]
            total[1] += row[-1]
    return [[*edge, *total] for edge, total in sorted(totals.items())]
