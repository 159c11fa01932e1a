"""The online placement problem of a cluster: active nodes, their queries, rates of streams."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from django.db.models import Count

from algorithms.placement.online import LeastCostWithinLoads, LoadLimits, OnlineState
from controlplane.models import Cluster, Node, QueryStream, Stream, Task


@dataclass(frozen=True)
class OnlineProblem:
    """The state of online placement; servers are positions in `nodes`, sources in `streams`.

    `state` changes with each placed or removed query.
    """

    nodes: list[Node]
    sources: dict[int, int]
    state: OnlineState

    def place(self, streams: Iterable[int], limits: LoadLimits) -> Node:
        """Assign a query on these stream ids to a node, and return the node."""
        capacities = np.array([node.capacity for node in self.nodes], np.float64)
        wanted = [self.sources[stream] for stream in streams]
        return self.nodes[LeastCostWithinLoads(capacities, limits).place(self.state, wanted)]

    def remove(self, streams: Iterable[int], node_id: int) -> None:
        """Remove a query of a node; queries of inactive nodes are not counted."""
        servers = {node.pk: server for server, node in enumerate(self.nodes)}
        if node_id in servers:
            wanted = [self.sources[stream] for stream in streams]
            self.state.remove(wanted, servers[node_id])


def read_online(cluster: Cluster) -> OnlineProblem | None:
    """Return the cluster's online problem, None without an active node.

    A split query counts once, on the node of its first task. The database sums the counts, so that
    ten thousand queries become a few thousand rows.
    """
    nodes = list(Node.objects.filter(cluster=cluster, active=True).order_by("index"))
    if not nodes:
        return None
    # Schemas are slow to parse.
    weighed = Stream.objects.filter(cluster=cluster).only("id", "rate", "declared_rate")
    streams = list(weighed.order_by("id"))
    sources = {stream.pk: source for source, stream in enumerate(streams)}
    rates = [stream.weight for stream in streams]
    state = _read_state(rates, nodes, sources)
    return OnlineProblem(nodes, sources, state)


def _read_state(rates: list[float], nodes: list[Node], sources: dict[int, int]) -> OnlineState:
    servers = {node.pk: server for server, node in enumerate(nodes)}
    loads = np.zeros(len(servers), np.int64)
    hosted = Task.objects.filter(node__in=servers, index=0).order_by().values("node")
    for pk, queries in hosted.annotate(n=Count("id")).values_list("node", "n"):
        loads[servers[pk]] = queries
    first = {"query__tasks__node__in": servers, "query__tasks__index": 0}
    read = QueryStream.objects.filter(**first).order_by().values("query__tasks__node", "stream")
    counted = read.annotate(n=Count("id")).values_list("query__tasks__node", "stream", "n")
    readers = ((servers[pk], sources[stream], queries) for pk, stream, queries in counted)
    capacities = [node.capacity for node in nodes]
    return OnlineState.from_counts(len(servers), rates, loads, readers, capacities)
