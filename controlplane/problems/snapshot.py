"""What a proposal was computed from, as JSON that is sealed with its moves.

{"version": int, "nu": float,
 "nodes": [{"index", "name", "capacity", "active"}] by index,
 "streams": [[id, records/s]] that a running query reads, by id,
 "queries": [[id, name, node index, [stream ids]]] that run, by id}

Queries that are split over several tasks are left out: they get their share of records on all
nodes wherever the others are, and stay where they are.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from controlplane.errors import Conflict
from controlplane.models import Cluster, Query, QueryStream, Stream, Task

# A version that moves on while it is read is rare; a hundred in a row is not to be expected.
TRIES = 20


def take_snapshot(cluster_id: int, nu: float) -> dict[str, Any]:
    """Return the cluster as it runs, consistent with one routing version."""
    for _ in range(TRIES):
        cluster = Cluster.objects.get(pk=cluster_id)
        snapshot = _read(cluster, nu)
        if Cluster.objects.filter(pk=cluster_id, routing_version=cluster.routing_version).exists():
            return snapshot
    raise Conflict("busy", "The routing table changes too quickly; try again")


def _read(cluster: Cluster, nu: float) -> dict[str, Any]:
    running = Task.objects.filter(
        query__cluster=cluster, query__state=Query.State.RUNNING, query__task_count=1
    )
    rows = running.order_by("query_id").values_list("query_id", "query__name", "node__index")
    streams = _streams_of_running(cluster)
    read = sorted({stream for ids in streams.values() for stream in ids})
    weights = {stream.pk: stream.weight for stream in Stream.objects.filter(cluster=cluster)}
    nodes = cluster.nodes.order_by("index").values("index", "name", "capacity", "active")
    return {
        "version": cluster.routing_version,
        "nu": nu,
        "nodes": list(nodes),
        "streams": [[stream, weights[stream]] for stream in read],
        "queries": [[query, name, node, streams.get(query, [])] for query, name, node in rows],
    }


def _streams_of_running(cluster: Cluster) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    reading = QueryStream.objects.filter(
        query__cluster=cluster, query__state=Query.State.RUNNING, query__task_count=1
    )
    for query, stream in reading.order_by("query_id", "stream_id").values_list(
        "query_id", "stream_id"
    ):
        found.setdefault(query, []).append(stream)
    return found


def canonical(value: Any) -> str:
    """Return the one way to write a JSON value: sorted keys, no blanks, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def seal_of(moves: Sequence[dict[str, Any]], snapshot: dict[str, Any]) -> str:
    """Return the sha256 in hex over query, from and to of the moves, and over the snapshot."""
    sealed: Iterable[list[int]] = [[move["query"], move["from"], move["to"]] for move in moves]
    return hashlib.sha256(canonical({"moves": sealed, "snapshot": snapshot}).encode()).hexdigest()
