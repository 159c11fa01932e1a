"""Clusters of any size with a disturbance in their stored telemetry, as alarms find them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from controlplane.access.roles import Actor
from controlplane.models import Alert, Cluster, Node, Query, RoutingVersion, Task
from controlplane.topology import streams
from controlplane.topology.streams import StreamSpec
from tests.support.cluster import placed, placed_split, stream_id
from tests.support.explaining import OverTime, record_past, steps
from tests.support.key_samples import sampled
from tests.support.schemas import REPORTS

# When disturbances begin, in minutes before now.
BEGAN = 6


@dataclass
class Disturbed:
    """A cluster whose samples are those of `loads`, `busy` and `rates`, by node and stream.

    `late`: the nodes whose records are late since the disturbance began, by index.
    """

    cluster: Cluster
    now: datetime
    queries: list[Query]
    loads: list[OverTime]
    rates: dict[int, OverTime]
    busy: list[OverTime]
    late: set[int] = field(default_factory=set)
    more: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def made(
        cls, by: Actor, now: datetime, *, nodes: int, names: Sequence[str], rate: float, **more: str
    ) -> "Disturbed":
        """Return a calm cluster: a query for each stream, `rate` records/s of each stream."""
        cluster = Cluster.objects.create(
            slug="mill", name="Paper mill", slots=nodes, splits=3, desired="running",
            state="running", alpha=10.0,
        )  # fmt: skip
        Node.objects.bulk_create(
            Node(cluster=cluster, index=index, name=f"press {index}", capacity=4 * rate)
            for index in range(nodes)
        )
        specs = [StreamSpec(name, schema=REPORTS.to_json(), declared_rate=rate) for name in names]
        streams.register(by, cluster, specs)
        cluster.refresh_from_db()
        queries = placed(by, cluster, {f"of-{name}": [name] for name in names})
        long_ago = now - timedelta(hours=2)
        RoutingVersion.objects.filter(cluster=cluster).update(created_at=long_ago)
        cluster.refresh_from_db()
        return cls(
            cluster, now, queries, [steps(rate, rate, 1)] * nodes,
            {stream_id(cluster, name): steps(rate, rate, 1) for name in names},
            [steps(0.2, 0.2, 1)] * nodes,
        )  # fmt: skip

    def host(self, query: Query) -> int:
        """Return the index of the node of the first task of a query."""
        return Task.objects.filter(query=query).order_by("index")[0].node.index

    def stored(self) -> "Disturbed":
        """Store samples and measures of half an hour, and the alert of the latency."""
        late = [
            (self.late and 15_000.0 if i in self.late else 300.0) for i in range(len(self.loads))
        ]
        calm = [300.0] * len(self.loads)
        values = {
            "busy": lambda ago: [busy(ago) for busy in self.busy],
            "node_p95": lambda ago: late if ago < BEGAN else calm,
            "p95": lambda ago: 15_000.0 if ago < BEGAN else 300.0,
        } | self.more
        # Samples go on while the pages are read.
        end = self.now + timedelta(minutes=1)
        record_past(self.cluster, end, self.loads, self.rates, **values)
        Alert.objects.create(
            cluster=self.cluster, subject="latency_p95", state=Alert.State.FIRING,
            since=self.now - timedelta(minutes=BEGAN), evaluated_at=self.now,
            fired_at=self.now - timedelta(minutes=BEGAN - 1), value=15_000.0, worst=15_000.0,
            limit=10_000.0,
        )  # fmt: skip
        return self


def slow_node(by: Actor, now: datetime) -> tuple[Disturbed, int, list[tuple[str, Any]]]:
    """A node needs eight times the processor time, while a small stream elsewhere rises."""
    made = Disturbed.made(by, now, nodes=3, names=["pulp", "ink", "glue", "dust"], rate=90)
    node = made.host(made.queries[0])
    made.busy[node] = steps(0.11, 0.9, BEGAN)
    elsewhere = next(q for q in made.queries if made.host(q) != node)
    rose = elsewhere.streams.get()
    made.rates[rose.pk] = steps(90, 150, BEGAN)
    made.loads[made.host(elsewhere)] = steps(90, 150, BEGAN)
    made.late = {node}
    return made.stored(), node, [("slow_node", f"press {node}")]


def lost_node(by: Actor, now: datetime) -> tuple[Disturbed, int, list[tuple[str, Any]]]:
    """A node processes no records; they wait."""
    made = Disturbed.made(by, now, nodes=6, names=[f"belt-{i}" for i in range(9)], rate=35)
    node = made.host(made.queries[4])

    def waiting(ago: float) -> list[int]:
        grown = round(35 * 60 * max(0.0, BEGAN - ago))
        return [grown if index == node else 0 for index in range(6)]

    made.more = {
        "node_waiting": waiting,
        "node_processed": lambda ago: [
            0.0 if index == node and ago < BEGAN else 35.0 for index in range(6)
        ],
    }
    made.late = {node}
    return made.stored(), node, [("node_stalled", f"press {node}")]


def hot_key(by: Actor, now: datetime) -> tuple[Disturbed, int, list[tuple[str, Any]]]:
    """A key of a stream gets most of its records, all on one node."""
    made = Disturbed.made(by, now, nodes=5, names=["s0", "s1", "pulp", "ink"], rate=60)
    query = placed_split(by, made.cluster, name="by-machine", key_grouping="key")
    RoutingVersion.objects.update(created_at=now - timedelta(hours=2))
    hot = made.queries[0].streams.get()
    node = made.host(made.queries[0])
    Cluster.objects.update(last_batch=int(now.timestamp()))
    keys = {"cutter 9": 300, "cutter 1": 60, "cutter 2": 60}
    sampled(
        query, now, keys, records_per_s=420.0, streams=dict.fromkeys(keys, hot.pk),
    )  # fmt: skip
    made.cluster.refresh_from_db()
    made.rates[hot.pk] = steps(10, 310, BEGAN)
    made.loads[node] = steps(60, 360, BEGAN)
    made.queries = [made.queries[0]]
    made.late = {node}
    return made.stored(), node, [("hot_key", "cutter 9")]


def rush_hour(by: Actor, now: datetime) -> tuple[Disturbed, int, list[tuple[str, Any]]]:
    """All streams have three times as many records."""
    names = [f"belt-{i}" for i in range(14)]
    made = Disturbed.made(by, now, nodes=7, names=names, rate=50)
    made.rates = dict.fromkeys(made.rates, steps(50, 150, BEGAN))
    made.loads = [steps(100, 300, BEGAN)] * 7
    made.busy = [steps(0.2, 0.6, BEGAN)] * 7
    made.late = set(range(7))
    return made.stored(), 2, [("streams_rose", 14)]


def expensive_query(by: Actor, now: datetime) -> tuple[Disturbed, int, list[tuple[str, Any]]]:
    """A query is placed on a node, which then needs five times the time for each record."""
    made = Disturbed.made(by, now, nodes=4, names=["pulp", "ink", "glue"], rate=80)
    (query,) = placed(by, made.cluster, {"all-pairs": ["pulp"]})
    moment = now - timedelta(minutes=BEGAN - 1)
    newest = RoutingVersion.objects.order_by("-version")[:1].values_list("pk", flat=True)
    RoutingVersion.objects.filter(pk__in=list(newest)).update(created_at=moment)
    node = made.host(query)
    made.busy[node] = steps(0.15, 0.8, BEGAN)
    made.late = {node}
    made.queries = [query, *made.queries]
    made.cluster.refresh_from_db()
    return made.stored(), node, [("expensive_query", "all-pairs")]


def two_at_once(by: Actor, now: datetime) -> tuple[Disturbed, int, list[tuple[str, Any]]]:
    """A rush hour, and a node that is slow."""
    names = [f"belt-{i}" for i in range(8)]
    made = Disturbed.made(by, now, nodes=4, names=names, rate=45)
    made.rates = dict.fromkeys(made.rates, steps(45, 135, BEGAN))
    made.loads = [steps(90, 270, BEGAN)] * 4
    node = made.host(made.queries[0])
    made.busy = [steps(0.1, 0.3, BEGAN)] * 4
    made.busy[node] = steps(0.1, 0.95, BEGAN)
    made.late = {node}
    return made.stored(), node, [("slow_node", f"press {node}"), ("streams_rose", 8)]


SCENARIOS: Mapping[str, Any] = {
    made.__name__: made
    for made in (slow_node, lost_node, hot_key, rush_hour, expensive_query, two_at_once)
}
