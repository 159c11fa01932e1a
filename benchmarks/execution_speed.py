"""How long a snapshot takes, and how long after its approval a plan begins.

    python -m benchmarks.execution_speed [--queries 100000] [--approvals 40]

Snapshot: a cluster of 100 nodes with so many running queries over 10,000 streams, all with
measured state; in this process, on the database of `DATABASE_URL` or a fresh SQLite. Begin: a
real web server, Celery worker and Redis; from the POST that approves until the first routing
version of the plan stands in Redis, where the pipeline reads it.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.control_plane import private_redis, running_services, tell, until
from tests.support.texts import SUMMARY, SUMMARY_TEXT
from workers.demo.schema import REPORT

STREAMS = 10_000
NODES = 100
CHUNK = 5_000
# Streams per query, as in `placing_speed`.
READS = 5


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        data = Path(folder)
        with private_redis(data) as redis_url:
            os.environ |= {
                "WEIR_DATA": folder,
                "REDIS_URL": redis_url,
                "DJANGO_SETTINGS_MODULE": "controlplane.settings",
                "WEIR_LOG_LEVEL": "WARNING",
            }
            _run(arguments, data)


def _run(arguments: argparse.Namespace, data: Path) -> None:
    import django  # noqa: PLC0415 - needs the environment

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    call_command("migrate_all", verbosity=0)
    _measure_snapshots(arguments.queries)
    with running_services(data) as (url, ready):
        ready()
        _measure_beginnings(url, arguments.approvals)


def _measure_snapshots(count: int) -> None:
    from controlplane.problems.snapshot import keep_snapshot, take_snapshot  # noqa: PLC0415

    cluster = _large_cluster(count)
    taken, kept = [], []
    for _ in range(5):
        begun = time.perf_counter()
        snapshot = take_snapshot(cluster.pk, 0.05)
        taken.append(time.perf_counter() - begun)
        assert len(snapshot["state"]) == count
        begun = time.perf_counter()
        row = keep_snapshot(snapshot)
        kept.append(time.perf_counter() - begun)
        row.delete()
    tell(f"snapshot of {count:,} queries: reading it", taken)
    tell("  writing it, compressed", kept)
    tell("  both", [a + b for a, b in zip(taken, kept, strict=True)])


def _large_cluster(count: int) -> Any:
    from django.utils import timezone  # noqa: PLC0415

    from controlplane.models import (  # noqa: PLC0415
        Cluster,
        Node,
        Query,
        QueryStream,
        Stream,
        Task,
    )

    cluster = Cluster.objects.create(slug="large", name="large", slots=NODES)
    nodes = Node.objects.bulk_create(
        Node(cluster=cluster, index=index, name=f"node {index}") for index in range(NODES)
    )
    streams = Stream.objects.bulk_create(
        (Stream(cluster=cluster, name=f"s{at}", declared_rate=1.0) for at in range(STREAMS)),
        batch_size=CHUNK,
    )
    draw = np.random.default_rng(1)
    for begin in range(0, count, CHUNK):
        queries = Query.objects.bulk_create(
            Query(
                cluster=cluster,
                name=f"q{at}",
                state="running",
                text=SUMMARY_TEXT,
                window_s=60.0,
                submitted_at=timezone.now(),
            )
            for at in range(begin, min(count, begin + CHUNK))
        )
        QueryStream.objects.bulk_create(
            QueryStream(query=query, stream=streams[at])
            for query in queries
            for at in draw.choice(STREAMS, READS, replace=False)
        )
        Task.objects.bulk_create(
            Task(query=query, node=nodes[at % NODES], since_version=1)
            for at, query in enumerate(queries)
        )
    _measured(cluster)
    return cluster


def _measured(cluster: Any) -> None:
    """Let every node have reported each of its tasks sixteen times."""
    from controlplane.connections import redis_client  # noqa: PLC0415
    from controlplane.models import Task  # noqa: PLC0415
    from controlplane.wire.measures import packed, write  # noqa: PLC0415

    of_node: dict[int, list[int]] = {}
    for query, node in Task.objects.filter(query__cluster=cluster).values_list(
        "query_id", "node__index"
    ):
        of_node.setdefault(node, []).append(query)
    for node, queries in of_node.items():
        rows = np.zeros((len(queries), 4), np.int64)
        rows[:, 0], rows[:, 2], rows[:, 3] = queries, 10, 1_000
        for batch in range(1, 17):
            data = packed(1_000, rows, np.zeros((0, 6), np.int64))
            write(redis_client(), cluster.slug, node, batch, data)


def _measure_beginnings(url: str, count: int) -> None:
    import httpx  # noqa: PLC0415
    from django.contrib.auth.models import User  # noqa: PLC0415

    from controlplane.connections import redis_client  # noqa: PLC0415
    from controlplane.services import executions, proposals, tokens  # noqa: PLC0415
    from controlplane.services.access import Actor  # noqa: PLC0415
    from controlplane.wire.publish import latest_version  # noqa: PLC0415

    user = User.objects.create_superuser("bench")
    actor = Actor(user)
    cluster = _small_cluster(actor)
    headers = {"Authorization": f"Bearer {tokens.create(user, 'bench')}"}
    begun_after = []
    with httpx.Client(base_url=url, headers=headers, timeout=30) as client:
        for _ in range(count):
            _scatter(cluster)
            proposal = proposals.request(actor, cluster, "mms", {"nu": 0.5})
            until(lambda p=proposal: _state(p) == "ready")  # type: ignore[misc]
            proposal.refresh_from_db()
            before = latest_version(redis_client(), cluster.slug) or 0
            begun = time.perf_counter()
            path = f"/api/v1/clusters/{cluster.slug}/proposals/{proposal.pk}/approve"
            client.post(path, json={"seal": proposal.seal}).raise_for_status()
            until(lambda v=before: (latest_version(redis_client(), "small") or 0) > v)  # type: ignore[misc]
            begun_after.append(time.perf_counter() - begun)
            until(lambda p=proposal: _state(p) == "executing")  # type: ignore[misc]
            proposal.refresh_from_db()
            executions.stop(actor, proposal, "measured")
    tell("approval until the first routing version is in Redis", begun_after)


def _state(proposal: Any) -> str:
    proposal.refresh_from_db(fields=["state"])
    return str(proposal.state)


def _small_cluster(actor: Any) -> Any:
    from controlplane.models import Cluster, Node  # noqa: PLC0415
    from controlplane.services import placing, queries, streams  # noqa: PLC0415
    from controlplane.services.queries import QuerySpec  # noqa: PLC0415

    cluster = Cluster.objects.create(slug="small", name="small", slots=4, desired="running")
    for index in range(4):
        Node.objects.create(cluster=cluster, index=index, name=f"node {index}", capacity=500)
    schema = REPORT.to_json()
    specs = [streams.StreamSpec(f"s{i}", schema=schema) for i in range(50)]
    streams.register(actor, cluster, specs)
    wanted = [QuerySpec(f"q{i}", (f"s{i % 50}",), SUMMARY) for i in range(400)]
    queries.submit_many(actor, cluster, wanted)
    placing.drain(cluster.pk)
    return cluster


def _scatter(cluster: Any) -> None:
    """Put the queries anywhere, so that there is always something to move."""
    from django.db import transaction  # noqa: PLC0415

    from controlplane.models import Execution, Node, Step, Task  # noqa: PLC0415
    from controlplane.services import routing  # noqa: PLC0415
    from controlplane.wire.routing import MoveTasks  # noqa: PLC0415

    # Nothing acknowledges steps here: what was stopped is taken for done.
    Step.objects.update(state="done")
    Execution.objects.exclude(lease_owner="").update(lease_owner="")
    draw = np.random.default_rng()
    nodes = list(Node.objects.filter(cluster=cluster).order_by("index"))
    with transaction.atomic():
        cluster.refresh_from_db()
        ops = []
        for task in Task.objects.filter(query__cluster=cluster):
            task.node = nodes[draw.integers(4)]
            task.save()
            ops.append(MoveTasks(task.query_id, ((task.node.index, 0, 1),)))
        routing.append(cluster.pk, cluster.routing_version, ops, "scattered")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--approvals", type=int, default=40)
    return parser.parse_args()


if __name__ == "__main__":
    main()
