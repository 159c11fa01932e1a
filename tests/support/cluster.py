"""Small named clusters, actors and telemetry for the tests of the control plane."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.models import Group, User
from django.test import Client

from controlplane.access.roles import CONFIRMED_AT, Actor
from controlplane.models import Cluster, Node, Query, RoutingVersion, Stream
from controlplane.queries.spec import QuerySpec
from controlplane.topology import placement, queries, streams
from controlplane.topology.streams import StreamSpec
from controlplane.topology.versions import delta_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.table import RoutingTable
from tests.support.schemas import REPORTS
from tests.support.texts import SUMMARY

NODES = 4
# Of all actors.
ADDRESS = "192.0.2.7"


def actor(role: str = "operator", name: str = "") -> Actor:
    """Return an actor with the role; "" for none."""
    user: Any = User(username=name or f"a-{role or 'nobody'}")
    user.set_unusable_password()
    # The audit log has what a test does, not who takes part in it.
    user.changed_by = None
    user.save()
    if role:
        user.groups.add(Group.objects.get_or_create(name=role)[0])
    return Actor(user, ADDRESS, is_confirmed=True)


def confirmed(client: Client) -> Client:
    """Return the client of a session in which the user has just confirmed to be present."""
    session = client.session
    session[CONFIRMED_AT] = time.time()
    session.save()
    return client


def small_cluster(
    by: Actor, *, nodes: int = NODES, stream_count: int = 6, alpha: float = 10.0
) -> Cluster:
    """Return cluster sf with nodes of 500 records/s and streams s0, s1, ... at 1, 2, ... /s."""
    cluster = Cluster.objects.create(slug="sf", name="SF", slots=nodes or 1, splits=2, alpha=alpha)
    Node.objects.bulk_create(
        Node(cluster=cluster, index=index, name=f"node {index}", capacity=500)
        for index in range(nodes)
    )
    specs = [
        StreamSpec(f"s{i}", schema=REPORTS.to_json(), declared_rate=i + 1.0)
        for i in range(stream_count)
    ]
    if specs:
        streams.register(by, cluster, specs)
        cluster.refresh_from_db()
    return cluster


def submit(by: Actor, cluster: Cluster, wanted: Mapping[str, Sequence[str]]) -> list[Query]:
    """Submit queries by name and streams."""
    return queries.submit_many(
        by, cluster, [QuerySpec(n, tuple(s), SUMMARY) for n, s in wanted.items()]
    )


def placed(by: Actor, cluster: Cluster, wanted: Mapping[str, Sequence[str]]) -> list[Query]:
    """Submit queries and place them."""
    saved = submit(by, cluster, wanted)
    placement.place_pending(cluster.pk)
    return list(Query.objects.filter(pk__in=[query.pk for query in saved]).order_by("pk"))


def placed_split(by: Actor, cluster: Cluster, name: str = "q", key_grouping: str = "") -> Query:
    """Return a running query that counts the reports per car of s0 and s1, over eight tasks."""
    text = QueryText({"n": "count(*)"}, key=("car",), window_s=60)
    spec = QuerySpec(name, ("s0", "s1"), text=text, tasks=8, key_grouping=key_grouping)
    query = queries.submit(by, cluster, spec)
    placement.place_pending(cluster.pk)
    query.refresh_from_db()
    return query


def replayed_table(cluster: Cluster) -> RoutingTable:
    """Return the table that the stored deltas lead to; raises on a gap or an inconsistency."""
    rows = RoutingVersion.objects.filter(cluster=cluster).order_by("version")
    return RoutingTable().apply(*(delta_of(row) for row in rows))


def stream_id(cluster: Cluster, name: str) -> int:
    """Return a stream's id by name."""
    return Stream.objects.get(cluster=cluster, name=name).pk


def telemetry(batch: int, emitted_ms: int, version: int = 1, **changed: Any) -> dict[str, Any]:
    """Return a telemetry row: 100 records in, 80 read, 120 delivered to two nodes."""
    node = {"bytes": 1000, "busy": 0.05, "tasks": 3, "state_bytes": 10, "late": 0}
    return {
        "batch": batch,
        "version": version,
        "emitted_ms": emitted_ms,
        "event_ms": emitted_ms - 500,
        "in": 100,
        "read": 80,
        "delivered": 120,
        "late": 0,
        "waiting": 0,
        "state_bytes": 20,
        "latency": {"n": 120, "p50": 200.0, "p95": 400.0, "p99": 500.0 + batch},
        "streams": {},
        "splits": [],
        "nodes": [{"node": 0, "loads": 80, **node}, {"node": 1, "loads": 40, **node}],
    } | changed
