"""What a proposal was computed from, as JSON that is sealed with its moves.

{"version": int, "nu": float,
 "nodes": [{"index", "name", "capacity", "active"}] by index,
 "streams": [[id, records/s]] that a running query reads, by id,
 "queries": [[id, name, node index, [stream ids]]] of one task that run, by id,
 "state": [[id, bytes]] of those whose state was measured, by id,
 "split": [[id, name, [[node index, first, past]], [records/s per task], [bytes per task]]]
          of the queries of several tasks, by id,
 "excluded": [[kind, name]] that no plan may move, a stream by its id}

Queries that are split over several tasks are no matter for placement: they get their share of
records on all nodes wherever the others are. What is not measured yet counts 0.
"""

import gc
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.utils import timezone

from controlplane.errors import Conflict
from controlplane.models import Cluster, Exclusion, Query, QueryStream, Snapshot, Stream, Task
from controlplane.problems.measured import Measured, measured_tasks
from controlplane.wire.routing import spans_from

# A version that moves on while it is read is rare; a hundred in a row is not to be expected.
TRIES = 20


def take_snapshot(cluster_id: int, nu: float) -> dict[str, Any]:
    """Return the cluster as it runs, consistent with one routing version."""
    for _ in range(TRIES):
        cluster = Cluster.objects.get(pk=cluster_id)
        with _uncollected():
            snapshot = _read(cluster, nu, measured_tasks(cluster))
        if Cluster.objects.filter(pk=cluster_id, routing_version=cluster.routing_version).exists():
            return snapshot
    raise Conflict("busy", "The routing table changes too quickly; try again")


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the collector of cycles away: it would look at all the new rows again and again.

    None of them is in a cycle; that takes a third of the time.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def keep_snapshot(snapshot: Mapping[str, Any]) -> Snapshot:
    """Return the row of a snapshot; equal ones share one."""
    text = canonical(snapshot)
    digest = hashlib.sha256(text.encode()).hexdigest()
    found = Snapshot.objects.filter(pk=digest).first()
    if found is not None:
        return found
    row, _ = Snapshot.objects.get_or_create(
        digest=digest,
        defaults={
            "data": Snapshot.packed(text),
            "size": len(text),
            "taken_at": timezone.now(),
        },
    )
    return row


def _read(cluster: Cluster, nu: float, measured: Measured) -> dict[str, Any]:
    running = Task.objects.filter(
        query__cluster=cluster, query__state=Query.State.RUNNING, query__task_count=1
    )
    rows = running.order_by("query_id").values_list("query_id", "query__name", "node__index")
    streams = _streams_of_running(cluster)
    read = sorted({stream for ids in streams.values() for stream in ids})
    weights = {stream.pk: stream.weight for stream in Stream.objects.filter(cluster=cluster)}
    nodes = cluster.nodes.order_by("index").values("index", "name", "capacity", "active")
    queries = [[query, name, node, streams.get(query, [])] for query, name, node in rows]
    return {
        "version": cluster.routing_version,
        "nu": nu,
        "nodes": list(nodes),
        "streams": [[stream, weights[stream]] for stream in read],
        "queries": queries,
        "state": [
            [query, measured[query, 0].state_bytes]
            for query, _, _ in rows
            if (query, 0) in measured
        ],
        "split": _split_queries(cluster, measured),
        "excluded": _excluded(cluster),
    }


def _streams_of_running(cluster: Cluster) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    reading = QueryStream.objects.filter(
        query__cluster=cluster, query__state=Query.State.RUNNING, query__task_count=1
    )
    for query, stream in reading.order_by().values_list("query_id", "stream_id"):
        found.setdefault(query, []).append(stream)
    # Half a million rows are sorted sooner five at a time than by the database.
    for streams in found.values():
        streams.sort()
    return found


def _split_queries(cluster: Cluster, measured: Measured) -> list[list[Any]]:
    rows = Task.objects.filter(
        query__cluster=cluster, query__state=Query.State.RUNNING, query__task_count__gt=1
    ).order_by("query_id", "index")
    columns = ("query_id", "query__name", "query__task_count", "index", "node__index")
    begins: dict[tuple[int, str, int], list[tuple[int, int]]] = {}
    for query, name, count, index, node in rows.values_list(*columns):
        begins.setdefault((query, name, count), []).append((index, node))
    return [
        [
            query,
            name,
            [list(span) for span in spans_from(found, count)],
            *_of_tasks(query, count, measured),
        ]
        for (query, name, count), found in begins.items()
    ]


def _of_tasks(query: int, count: int, measured: Measured) -> tuple[list[float], list[int]]:
    known = [measured.get((query, task)) for task in range(count)]
    return (
        [round(one.records_per_s, 3) if one else 0.0 for one in known],
        [one.state_bytes if one else 0 for one in known],
    )


def _excluded(cluster: Cluster) -> list[list[Any]]:
    live = Exclusion.objects.filter(cluster=cluster, expires_at__gt=timezone.now())
    found = live.order_by("kind", "subject").values_list("kind", "subject")
    streams = dict(cluster.streams.values_list("name", "id")) if found else {}
    return [
        [kind, streams.get(subject, 0) if kind == Exclusion.Kind.STREAM else subject]
        for kind, subject in found
    ]


def canonical(value: Any) -> str:
    """Return the one way to write a JSON value: sorted keys, no blanks, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def sealed_moves(moves: Sequence[Mapping[str, Any]]) -> Iterable[list[int]]:
    """Return what of the moves is sealed, in their order: query, tasks, from and to."""
    return [
        [move["query"], move.get("first", 0), move.get("past", 1), move["from"], move["to"]]
        for move in moves
    ]


def seal_of(moves: Sequence[Mapping[str, Any]], digest: str) -> str:
    """Return the sha256 in hex over the moves in their order, and the snapshot by its digest."""
    sealed = canonical({"moves": sealed_moves(moves), "snapshot": digest})
    return hashlib.sha256(sealed.encode()).hexdigest()
