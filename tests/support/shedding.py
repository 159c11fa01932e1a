"""Snapshots of clusters with rates, costs and queries for load shedding."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Query, Task
from controlplane.planners.shedding.inputs import (
    NodeSeconds,
    SheddingInput,
    SheddingQuery,
    SheddingStream,
)
from controlplane.planning.measured.costs import BatchSeconds
from controlplane.plans.ladder_settings import SheddingSettings
from controlplane.plans.snapshot import (
    ClusterSnapshot,
    GroupingRow,
    NodeRow,
    QueryRow,
    SplitQueryRow,
    StreamRow,
)
from controlplane.queries.spec import QuerySpec
from controlplane.topology import placement, queries
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.drop_rules import INPUT, Edge
from controlplane.wire.routing.ladder import Ladder, ResourceKind
from tests.support.admission import arrived
from tests.support.cluster import placed
from tests.support.watching import measured

HOUR_MS = 3_600_000


@dataclass
class SheddingCluster:
    """A cluster under construction: streams by id with their rates, nodes, queries.

    `seconds`: of each node per delivered record; `emulated`: indices of nodes.
    """

    rates: Mapping[int, float]
    seconds: Sequence[float | None]
    emulated: frozenset[int] = frozenset()
    split_seconds: float | None = None
    merge_s: float | None = None
    partials_per_record: float | None = None
    settings: SheddingSettings = field(default_factory=SheddingSettings)
    # Micro-batches without fixed time: all time of nodes is usable.
    batch: BatchSeconds | None = field(default_factory=lambda: BatchSeconds(0.0, 1.0))
    queries: list[SheddingQuery] = field(default_factory=list)
    whole: list[QueryRow] = field(default_factory=list)
    split: list[SplitQueryRow] = field(default_factory=list)
    groupings: list[GroupingRow] = field(default_factory=list)
    # By stream the split nodes that read partitions of it.
    shares: Mapping[int, list[tuple[int, float]]] = field(default_factory=dict)

    def add(
        self,
        query: int,
        streams: Sequence[int],
        nodes: Sequence[int],
        *,
        weight: float = 1.0,
        floor: float = 0.0,
        right: Sequence[int] = (),
        work: Sequence[float] = (),
        window_ms: int = HOUR_MS,
        slide_ms: int = 0,
        aggregators: Sequence[int] = (),
        shared: int = 0,
    ) -> "SheddingCluster":
        """Add a query with one task on each of these nodes; return the cluster."""
        routing = "key" if len(nodes) > 1 else ""
        self.queries.append(
            SheddingQuery(query, weight, floor, list(streams), list(right), window_ms,
                      slide_ms or window_ms,
                      routing, shared or query)
        )  # fmt: skip
        name = f"q{query}"
        if len(nodes) == 1:
            self.whole.append(QueryRow(query, name, nodes[0], list(streams)))
        else:
            ranges = [[node, task, task + 1] for task, node in enumerate(nodes)]
            loads = list(work) or [0.0] * len(nodes)
            self.split.append(
                SplitQueryRow(query, name, ranges, loads, [0] * len(nodes), list(streams))
            )
        if aggregators:
            first, *more = aggregators
            self.groupings.append(GroupingRow(query, "", first, bool(right), more))
        return self

    def snapshot(self) -> ClusterSnapshot:
        """Return the snapshot; stream s is read by split node s modulo 2."""
        given = SheddingInput(
            [
                SheddingStream(pk, f"s{pk}", rate, pk % 2, self.shares.get(pk, ()))
                for pk, rate in self.rates.items()
            ],
            self.queries,
            [
                NodeSeconds(index, f"node {index}", seconds, index in self.emulated)
                for index, seconds in enumerate(self.seconds)
            ],
            self.split_seconds,
            self.merge_s,
            self.partials_per_record,
            self.settings,
            self.batch,
        )
        nodes = [
            NodeRow(index, f"node {index}", 100.0, active=True, emulated=index in self.emulated)
            for index in range(len(self.seconds))
        ]
        reading = [*(row.streams for row in self.whole), *(row.streams for row in self.split)]
        read = {stream for streams in reading for stream in streams}
        return ClusterSnapshot(
            1, 0.1, nodes, [StreamRow(s, self.rates[s]) for s in sorted(read)], self.whole, {},
            self.split, [], self.groupings, {pk: pk % 2 for pk in self.rates}, 2,
            inputs={given.name: given},
        )  # fmt: skip


def part_of(parts: Mapping[Edge, float], stream: int, query: int) -> float:
    """Return the part that an edge keeps: its own, else that of the input edge."""
    return parts.get((stream, query), parts.get((stream, INPUT), 1.0))


def loads_of(
    ladder: Ladder, parts: Mapping[Edge, float], rates: Mapping[int, float]
) -> dict[tuple[ResourceKind, int], float]:
    """Return the load of each resource that the costs of a ladder give at these kept parts."""
    loads: dict[tuple[ResourceKind, int], float] = {}
    for cost in ladder.costs:
        records = rates[cost.stream] * part_of(parts, cost.stream, cost.query)
        place = cost.kind, cost.number
        loads[place] = loads.get(place, 0.0) + records * cost.seconds
    return loads


def busy_cluster(by: Actor, cluster: Cluster, now: datetime) -> Cluster:
    """Give a small cluster queries, 30 minutes of rates and a millisecond per record and node.

    s0 has 300 records/s, s1 100, s2 200. Queries on s0: `low` (weight 0.1) and `high` (weight 1,
    floor 0.5); on s1 and s2: `both`.
    """
    placed(by, cluster, {"low": ["s0"], "both": ["s1", "s2"]})
    text = QueryText({"n": "count(*)"}, window_s=30)
    queries.submit(by, cluster, QuerySpec("high", ("s0",), text))
    placement.place_pending(cluster.pk)
    # Both queries on s0 need the time of one node.
    Task.objects.filter(query__cluster=cluster).update(node=cluster.nodes.get(index=0))
    Query.objects.filter(name="low").update(shedding_weight=0.1)
    Query.objects.filter(name="high").update(shedding_floor=0.5)
    rates = {"s0": 300.0, "s1": 100.0, "s2": 200.0}
    arrived(cluster, now, {name: [rate] * 180 for name, rate in rates.items()})
    measured(cluster, now, loads=[500.0] * 4, busy=[0.5] * 4)
    Cluster.objects.filter(pk=cluster.pk).update(desired="running")
    cluster.refresh_from_db()
    return cluster
