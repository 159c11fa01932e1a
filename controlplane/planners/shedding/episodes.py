"""Episodes of load shedding: the intervals of a ladder from the first drop to a quiet time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from controlplane.models import Cluster, SheddingInterval
from controlplane.planners.shedding.history import LONGEST_GAP, intervals
from controlplane.planners.shedding.interval_costs import IntervalCost, interval_costs
from controlplane.wire.routing.drop_rules import INPUT, Edge

# An episode is over when nothing was dropped for so long.
QUIET: Final = timedelta(minutes=2)
# The intervals of all episodes of an answer; their edges are rows of JSON.
MOST_INTERVALS: Final = 1_000
# A present loss is counted from at most so long ago.
LONGEST_LOSS: Final = timedelta(days=1)


@dataclass(frozen=True)
class Episode:
    """An episode: its cost as of one interval, and those of its intervals, the newest first.

    `cost.row` is not stored: it has the highest rung and position, and the sums of all intervals.
    `is_over`: nothing was dropped for `QUIET` since.
    """

    cost: IntervalCost
    intervals: tuple[IntervalCost, ...]
    is_over: bool

    @property
    def kept(self) -> float | None:
        """Return the mean part of the value of all records that was kept, None if not known."""
        lost = self.cost.quality_lost
        return None if lost is None else 1 - lost


def episodes(cluster: Cluster, start: datetime, stop: datetime, now: datetime) -> list[Episode]:
    """Return the episodes of a time range, the newest first.

    Of at most `MOST_INTERVALS` intervals, the newest ones that overlap the range.
    """
    rows = intervals(cluster, start, stop, MOST_INTERVALS)
    groups = list(_grouped(rows))
    costs = interval_costs(cluster, [_merged(cluster, group) for group in groups])
    parts = iter(interval_costs(cluster, rows))
    return [
        Episode(cost, tuple(next(parts) for _ in group), now - cost.row.ended_at > QUIET)
        for cost, group in zip(costs, groups, strict=True)
    ]


@dataclass(frozen=True)
class Loss:
    """The records of a stream or query since its present loss began, and those that it lost."""

    since: datetime
    read: int
    dropped: int

    @property
    def share(self) -> float:
        """Return the part that was lost."""
        return self.dropped / self.read if self.read else 0.0


@dataclass(frozen=True)
class PresentDrops:
    """What the ladder of a cluster drops now: the intervals of its episode, the newest first."""

    intervals: Sequence[SheddingInterval] = ()

    @property
    def edges(self) -> set[Edge]:
        """Return the edges that drop records in the newest interval."""
        newest = self.intervals[0].by_edge if self.intervals else ()
        return {(stream, query) for stream, query, _ in newest}

    def of_query(self, query: int, streams: Sequence[int]) -> Loss | None:
        """Return the loss of a query that reads these streams, None without one."""
        return self._loss(streams, lambda edges, s: edges.get((s, query), 0))

    def of_stream(self, stream: int) -> Loss | None:
        """Return the records of a stream that some query lacks, None without any."""
        return self._loss([stream], lambda edges, s: max(
            (n for (read, query), n in edges.items() if read == s and query != INPUT), default=0
        ))  # fmt: skip

    def _loss(
        self, streams: Sequence[int], on_edge: Callable[[Mapping[Edge, int], int], int]
    ) -> Loss | None:
        losses = []
        for row in self.intervals:
            read = dict(row.by_stream)
            edges = {(stream, query): records for stream, query, records in row.by_edge}
            lost = sum(
                min(read.get(s, 0), edges.get((s, INPUT), 0) + on_edge(edges, s)) for s in streams
            )
            if lost:
                losses.append(Loss(row.started_at, sum(read.get(s, 0) for s in streams), lost))
        if not losses:
            return None
        total, dropped = sum(loss.read for loss in losses), sum(loss.dropped for loss in losses)
        return Loss(losses[-1].since, total, dropped)


def present_drops(cluster: Cluster, now: datetime) -> PresentDrops:
    """Return what the ladder of a cluster drops now."""
    rows = intervals(cluster, now - LONGEST_GAP, now, 1)
    if rows:
        rows = next(_grouped(intervals(cluster, now - LONGEST_LOSS, now, MOST_INTERVALS)))
    return PresentDrops(rows)


def _grouped(rows: Sequence[SheddingInterval]) -> Iterator[list[SheddingInterval]]:
    """Yield the intervals of each episode; `rows` are in descending order of time."""
    group: list[SheddingInterval] = []
    for row in rows:
        if group and group[-1].started_at - row.ended_at > QUIET:
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _merged(cluster: Cluster, rows: Sequence[SheddingInterval]) -> SheddingInterval:
    """Return intervals as one that is not stored."""
    dropped: dict[tuple[int, int], int] = {}
    read: dict[int, int] = {}
    for row in rows:
        for stream, query, records in row.by_edge:
            dropped[stream, query] = dropped.get((stream, query), 0) + records
        for stream, records in row.by_stream:
            read[stream] = read.get(stream, 0) + records
    edges = sorted(dropped.items(), key=lambda item: (-item[1], item[0]))
    return SheddingInterval(
        cluster=cluster,
        rung=max(row.rung for row in rows),
        position=max(row.position for row in rows),
        started_at=min(row.started_at for row in rows),
        ended_at=max(row.ended_at for row in rows),
        read=sum(row.read for row in rows),
        dropped=sum(row.dropped for row in rows),
        by_edge=[[*edge, records] for edge, records in edges],
        by_stream=[list(pair) for pair in read.items()],
    )
