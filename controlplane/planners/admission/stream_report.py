"""The report on a stream: outlook, split nodes before and after the plan, readers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.utils import timezone
from redis.exceptions import RedisError

from controlplane.catalog.split_reading import reading_of
from controlplane.connections import redis_client
from controlplane.models import Cluster, Proposal, Query, Stream, Task
from controlplane.planners.admission.cluster_forecast import ClusterForecast, cluster_forecast
from controlplane.planners.admission.long_outlook import LongOutlook, long_outlook_of
from controlplane.planners.admission.outlook import StreamOutlook, outlook_of
from controlplane.planners.admission.split_nodes import SplitNodeRow, split_node_table
from controlplane.planners.partitioning.skew_history import newest_skews
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.telemetry.arrivals import LagPoint, lag_of
from controlplane.wire.measures import read_tasks
from controlplane.wire.routing.cluster_actions import AssignPartition, AssignStream
from controlplane.wire.routing.split_assignment import SourcePartition, SplitShares

READERS: Final = 8
# Waiting proposals that are read.
_PROPOSALS: Final = 3
# The skew of keys is that of the newest period of ten seconds that is not older.
_RECENT: Final = timedelta(minutes=10)


@dataclass(frozen=True)
class SplitNodeChange:
    """A split node, and its expected records/s after the redirections that are planned."""

    row: SplitNodeRow
    after: float

    @property
    def share_after(self) -> float | None:
        """Return the expected load over the capacity, None if it is not known."""
        return self.after / self.row.capacity if self.row.capacity else None


@dataclass(frozen=True)
class PlannedMove:
    """What the policy's strategy plans for the next period.

    `targets`: where the stream, or partitions of its source, are redirected; none if it stays.
    `redirected`: the number of all redirected streams and partitions.
    """

    targets: frozenset[int] = frozenset()
    redirected: int = 0


@dataclass(frozen=True)
class StreamReader:
    """A running query that reads the stream.

    `evaluations_per_s`, `state_bytes`: of all its tasks; None if they are not measured. `nodes`:
    names. `top_share`, `skew`: of its keys in the last ten minutes, the share of records of the
    largest key, and the imbalance of its tasks (a share of capacity); None without samples.
    """

    id: int
    name: str
    nodes: Sequence[str]
    task_count: int
    window_s: float
    evaluations_per_s: float | None
    state_bytes: int | None
    top_share: float | None = None
    skew: float | None = None


@dataclass(frozen=True)
class StreamReport:
    """A stream now. `outlook`: the next periods, as plans read them, None before its first record.

    `shares`: the part of it that each split node reads. `proposal`: a waiting proposal that
    redirects it, None without one. `reader_count`: of all
    running queries that read it; `node_count`: the nodes that they are on. `lag`: None before its
    first record.
    """

    stream: Stream
    outlook: StreamOutlook | None
    long_outlook: LongOutlook | None
    splits: Sequence[SplitNodeChange]
    shares: Mapping[int, float]
    planned: PlannedMove
    policy: PolicySettings
    proposal: int | None
    readers: Sequence[StreamReader]
    reader_count: int
    node_count: int
    lag: LagPoint | None = None

    @property
    def own(self) -> SplitNodeRow:
        """Return the split node that reads the stream, of partitions the fullest one."""
        rows = [item.row for item in self.splits if self.shares.get(item.row.index)]
        return max(rows, key=lambda row: row.expected)


def stream_report(stream: Stream) -> StreamReport:
    """Return the report on a stream for the present state of its cluster."""
    cluster = stream.cluster
    policy = policy_of(cluster)
    forecast = cluster_forecast(cluster, policy)
    reading = reading_of(cluster)
    shares = reading.shares()
    outlook = outlook_of(stream, forecast=forecast, shares=shares)
    rows = split_node_table(cluster, forecast, shares)
    moves = {
        place: target for place, target in forecast.moves.items()
        if place.stream in shares and reading.assignment.of(*place) != target
    }  # fmt: skip
    readers, count, nodes = _readers(stream)
    targets = {target for place, target in moves.items() if place.stream == stream.pk}
    planned = PlannedMove(frozenset(targets), len(moves))
    return StreamReport(
        stream=stream,
        outlook=outlook,
        long_outlook=long_outlook_of(stream, outlook),
        splits=_changes(forecast, reading.shares(moves), rows, moves),
        shares=shares[stream.pk],
        planned=planned,
        policy=policy,
        proposal=_proposal(stream),
        readers=readers,
        reader_count=count,
        node_count=nodes,
        lag=lag_of(cluster, stream.pk),
    )


def _changes(
    forecast: ClusterForecast, shares: SplitShares, rows: Sequence[SplitNodeRow],
    moves: Mapping[SourcePartition, int],
) -> list[SplitNodeChange]:  # fmt: skip
    """Return the split nodes with their loads after the moves; `shares`: as they read then."""
    loads = forecast.split_loads(shares)
    capacity, moment = forecast.capacity or None, forecast.computed_at
    opened = [
        SplitNodeRow(index, 0, capacity, None, None, None, None, 0.0, moment)
        for index in sorted(set(moves.values()) - {row.index for row in rows})
    ]
    return [
        SplitNodeChange(row, float(loads[row.index].max()) if row.index in loads else 0.0)
        for row in (*rows, *opened)
    ]


def _proposal(stream: Stream) -> int | None:
    """Return the newest waiting proposal that redirects the stream."""
    rows = Proposal.awaiting_approval().filter(cluster=stream.cluster)
    for row in rows.order_by("-requested_at")[:_PROPOSALS]:
        actions = (planned.action for planned in row.plan)
        redirects = (a for a in actions if isinstance(a, AssignStream | AssignPartition))
        if any(action.stream == stream.pk for action in redirects):
            return row.pk
    return None


def _readers(stream: Stream) -> tuple[list[StreamReader], int, int]:
    """Return the readers with the highest costs, the number of all, and the nodes that they use."""
    queries = Query.objects.filter(streams=stream, state=Query.State.RUNNING)
    placed = Task.objects.filter(query__in=queries).values_list("query", "node__name")
    nodes: dict[int, set[str]] = {}
    for query, node in placed:
        nodes.setdefault(query, set()).add(node)
    costs = _costs(stream.cluster)
    rows = list(queries.only("id", "name", "task_count", "window_s"))
    rows.sort(key=lambda row: (-costs.get(row.pk, (0.0, 0))[0], row.name))
    split = [row.pk for row in rows[:READERS] if row.task_count > 1]
    readers, skews = [], newest_skews(stream.cluster, split, timezone.now() - _RECENT)
    for row in rows[:READERS]:
        rate, size = costs.get(row.pk, (None, None))
        readers.append(
            StreamReader(
                row.pk, row.name, sorted(nodes.get(row.pk, ())), row.task_count, row.window_s,
                rate, size, *skews.get(row.pk, (None, None)),
            )
        )  # fmt: skip
    return readers, len(rows), len(set().union(*nodes.values()))


def _costs(cluster: Cluster) -> dict[int, tuple[float, int]]:
    """Return the measured evaluations/s and bytes of state of each query."""
    costs: dict[int, tuple[float, int]] = {}
    try:
        measures = read_tasks(redis_client(), cluster.slug, list(range(cluster.slots)))
    except (RedisError, OSError):
        return {}
    for row in measures:
        rate, size = costs.get(row.query, (0.0, 0))
        costs[row.query] = rate + row.evaluations_per_s, size + row.state_bytes
    return costs
