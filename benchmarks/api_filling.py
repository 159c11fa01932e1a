"""The rows of the API's benchmark, written in bulk."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from tests.support.texts import SUMMARY_TEXT
from workers.demo.recording import REPORT

NODES = 16
MOVES = 60
STREAMS_PER_QUERY = 2
BATCH = 2000


def fill(queries: int, streams: int, proposals: int) -> tuple[Any, Any]:
    """Create an admin and a cluster with so many rows, and return both; nine in ten queries run.

    Every ten queries have a version of the routing table and an entry in the audit log.
    """
    from django.contrib.auth.models import User  # noqa: PLC0415

    from controlplane.models import Cluster, Node  # noqa: PLC0415

    user = User.objects.create_superuser("bench")
    versions = queries // 10
    cluster = Cluster.objects.create(
        slug="bench", name="bench", slots=NODES, routing_version=versions
    )
    Node.objects.bulk_create(
        Node(cluster=cluster, index=i, name=f"node {i}", capacity=500) for i in range(NODES)
    )
    _streams(cluster, streams)
    add_queries(cluster, queries)
    _proposals(cluster, proposals)
    _history(cluster, versions)
    return user, cluster


def _streams(cluster: Any, count: int) -> None:
    from controlplane.models import Stream  # noqa: PLC0415

    schema = REPORT.to_json()
    rows = [
        Stream(
            cluster=cluster, name=f"s{i}", title=f"stream {i}", schema=schema, rate=1.0 + i % 97,
            split=i % 2,
        )
        for i in range(count)
    ]  # fmt: skip
    Stream.objects.bulk_create(rows, batch_size=BATCH)


def add_queries(cluster: Any, count: int) -> None:
    """Create so many queries, of which nine in ten run with one task each."""
    from django.utils import timezone  # noqa: PLC0415

    from controlplane.catalog.reader_counts import recount  # noqa: PLC0415
    from controlplane.catalog.source_rates import record_source_rates  # noqa: PLC0415
    from controlplane.models import Query, Task  # noqa: PLC0415

    now = timezone.now()
    draw = np.random.default_rng(1)
    states = ["running"] * 9 + ["ended"]
    rows = Query.objects.bulk_create(
        (
            Query(
                cluster=cluster,
                name=f"query-{i:06d}",
                state=states[i % 10],
                text=SUMMARY_TEXT,
                window_s=float(draw.choice([60, 300, 3600])),
                submitted_by=f"user-{i % 50}",
                # Ten at a time, as a bulk submits them: the order has ties.
                submitted_at=now - timedelta(seconds=count - i // 10),
            )
            for i in range(count)
        ),
        batch_size=BATCH,
    )
    _reads(cluster, rows, draw)
    nodes = list(cluster.nodes.order_by("index").values_list("pk", flat=True))
    Task.objects.bulk_create(
        (
            Task(query=row, node_id=nodes[i % len(nodes)], since_version=1)
            for i, row in enumerate(rows)
            if row.state == "running"
        ),
        batch_size=BATCH,
    )
    # What services store for lists.
    recount(cluster)
    record_source_rates(cluster)


def _reads(cluster: Any, rows: Sequence[Any], draw: np.random.Generator) -> None:
    """Let every query read a stream of the first half and one of the second."""
    from controlplane.models import QueryStream  # noqa: PLC0415

    streams = np.array(list(cluster.streams.order_by("pk").values_list("pk", flat=True)))
    first = draw.integers(0, len(streams) // 2, len(rows))
    second = draw.integers(len(streams) // 2, len(streams), len(rows))

    def read() -> Iterator[QueryStream]:
        for row, a, b in zip(rows, first, second, strict=True):
            yield QueryStream(query=row, stream_id=int(streams[a]))
            yield QueryStream(query=row, stream_id=int(streams[b]))

    QueryStream.objects.bulk_create(read(), batch_size=BATCH)


def _proposals(cluster: Any, count: int) -> None:
    from django.utils import timezone  # noqa: PLC0415

    from controlplane.models import Proposal  # noqa: PLC0415
    from controlplane.plans.plan import TaskMove, rows_of  # noqa: PLC0415

    now = timezone.now()
    measures = {
        "replication_factor": 1.4, "traffic": 900.0, "imbalance": 0.2, "max_load": 0.9,
        "loads": [100] * NODES, "rates": [450.0] * NODES,
    }  # fmt: skip
    actions = rows_of(TaskMove(query, 0, 0, 1, 900) for query in range(MOVES))
    Proposal.objects.bulk_create(
        (
            Proposal(
                cluster=cluster,
                state="rejected" if i % 3 else "ready",
                algorithm="mms",
                parameters={"nu": 0.05},
                requested_by="bench",
                requested_at=now - timedelta(minutes=count - i),
                actions=actions,
                imbalance_after=[0.2] * MOVES,
                before=measures,
                after=measures,
                predicted={"actions": MOVES, "moves": MOVES, "bytes": 54_000, "steps": 4},
                seal="0" * 64,
            )
            for i in range(count)
        ),
        batch_size=200,
    )


def _history(cluster: Any, count: int) -> None:
    from django.utils import timezone  # noqa: PLC0415

    from controlplane.models import AuditEntry, RoutingVersion  # noqa: PLC0415

    now = timezone.now()
    RoutingVersion.objects.bulk_create(
        (
            RoutingVersion(
                cluster=cluster, version=i + 1, ops=[], reason="10 queries placed",
                published_at=now, applied_at=now,
            )
            for i in range(count)
        ),
        batch_size=BATCH,
    )  # fmt: skip
    AuditEntry.objects.bulk_create(
        (
            AuditEntry(
                at=now - timedelta(seconds=count - i), actor=f"user-{i % 50}", cluster=cluster,
                action="query.submit", object="10 queries", after={"names": ["a", "b"]},
            )
            for i in range(count)
        ),
        batch_size=BATCH,
    )  # fmt: skip
