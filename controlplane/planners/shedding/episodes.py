"""Episodes of load shedding: the intervals of a ladder from the first drop to a quiet time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from controlplane.models import Cluster, SheddingInterval
from controlplane.planners.shedding.history import intervals
from controlplane.planners.shedding.interval_costs import IntervalCost, interval_costs

# An episode is over when nothing was dropped for so long.
QUIET: Final = timedelta(minutes=2)
# The intervals of all episodes of an answer; their edges are rows of JSON.
MOST_INTERVALS: Final = 1_000


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
