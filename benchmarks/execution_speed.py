"""How long a snapshot takes, and how long an operator waits for a proposal and for its start.

    python -m benchmarks.execution_speed [--queries 100000] [--approvals 40] [--postgres]

Snapshot: a cluster of 100 nodes with so many running queries over 10,000 streams, all with
measured state; in this process, on a fresh database. Proposal and start: web server and Celery
worker with the commands of `make run`; from the POST that requests a proposal until the API shows
it as ready, and from the POST that approves it until the first routing version of the plan is in
Redis, where the pipeline reads it.
"""

import argparse
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from benchmarks.control_plane import api_client, figures, fresh_weir, running_services, wait_until
from tests.support.texts import SUMMARY, SUMMARY_TEXT
from workers.demo.recording import REPORT

STREAMS: Final = 10_000
NODES: Final = 100
CHUNK: Final = 5_000
# Streams per query, as in `placing_speed`.
READS: Final = 5
SMALL: Final = "/api/v1/clusters/small/proposals"


def main() -> None:
    options = parse_options()
    with fresh_weir(postgres=options.postgres) as data:
        _measure_snapshots(options.queries, options.streams, options.nodes)
        with running_services(data) as url:
            _measure_proposals(url, options.approvals)


def _measure_snapshots(count: int, streams: int, nodes: int) -> None:
    from controlplane.planning.snapshots import keep_snapshot, take_snapshot  # noqa: PLC0415

    cluster = fill(count, streams, nodes)
    taken, kept = [], []
    for _ in range(5):
        started = time.perf_counter()
        snapshot = take_snapshot(cluster.pk, 0.05)
        taken.append(time.perf_counter() - started)
        assert len(snapshot.state) == count
        started = time.perf_counter()
        row = keep_snapshot(snapshot)
        kept.append(time.perf_counter() - started)
        row.delete()
    print(f"snapshot of {count:,} queries, read:      {figures(taken)}")
    print(f"  written, compressed: {figures(kept)}")
    print(f"  both:                {figures([a + b for a, b in zip(taken, kept, strict=True)])}")


def fill(count: int, streams: int, nodes: int) -> Any:
    """Create a cluster with so many running queries and their measures, and return it."""
    from controlplane.models import Cluster, Node, Stream  # noqa: PLC0415

    cluster = Cluster.objects.create(slug="large", name="large", slots=nodes)
    node_rows = Node.objects.bulk_create(
        Node(cluster=cluster, index=index, name=f"node {index}") for index in range(nodes)
    )
    schema = REPORT.to_json()
    stream_rows = Stream.objects.bulk_create(
        (
            Stream(cluster=cluster, name=f"s{i}", schema=schema, declared_rate=1.0)
            for i in range(streams)
        ),
        batch_size=CHUNK,
    )
    draw = np.random.default_rng(1)
    for begin in range(0, count, CHUNK):
        _create_queries(range(begin, min(count, begin + CHUNK)), stream_rows, node_rows, draw)
    _write_measures(cluster)
    return cluster


def _create_queries(
    numbers: range, streams: Sequence[Any], nodes: Sequence[Any], draw: np.random.Generator
) -> None:
    from django.utils import timezone  # noqa: PLC0415

    from controlplane.models import Query, QueryStream, Task  # noqa: PLC0415

    queries = Query.objects.bulk_create(
        Query(
            cluster=nodes[0].cluster,
            name=f"q{number}",
            state="running",
            text=SUMMARY_TEXT,
            window_s=60.0,
            submitted_at=timezone.now(),
        )
        for number in numbers
    )
    QueryStream.objects.bulk_create(
        QueryStream(query=query, stream=streams[i])
        for query in queries
        for i in draw.choice(len(streams), READS, replace=False)
    )
    Task.objects.bulk_create(
        Task(query=query, node=nodes[number % len(nodes)], since_version=1)
        for number, query in zip(numbers, queries, strict=True)
    )


def _write_measures(cluster: Any) -> None:
    """Write what every node reports of each of its tasks, sixteen times."""
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
            data = packed(1_000, rows)
            write(redis_client(), cluster.slug, node, batch, data)


def _measure_proposals(url: str, count: int) -> None:
    from django.contrib.auth.models import User  # noqa: PLC0415

    from controlplane.access.roles import Actor  # noqa: PLC0415

    actor = Actor(User.objects.create_superuser("bench"))
    cluster = _small_cluster(actor)
    requested, started = [], []
    with api_client(url, actor.user) as client:
        for _ in range(count):
            _scatter(cluster)
            proposal, seconds = _request(client)
            requested.append(seconds)
            started.append(_approve(client, proposal))
            _stop(actor, proposal["id"])
    print(f"request until the proposal is ready:             {figures(requested)}")
    print(f"approval until the first routing version exists: {figures(started)}")


def _request(client: Any) -> tuple[Any, float]:
    """Request a proposal over HTTP; return it as it is ready, and the seconds until then."""
    started = time.perf_counter()
    body = {"algorithm": "mms", "parameters": {"nu": 0.5}}
    answer = client.post(SMALL, json=body).raise_for_status().json()
    while answer["state"] == "computing":
        answer = client.get(f"{SMALL}/{answer['id']}").raise_for_status().json()
    assert answer["state"] == "ready", answer
    return answer, time.perf_counter() - started


def _approve(client: Any, proposal: Any) -> float:
    """Approve a proposal over HTTP; return the seconds until Redis has a newer routing version."""
    from controlplane.connections import redis_client  # noqa: PLC0415
    from controlplane.wire.routing.publication import latest_version  # noqa: PLC0415

    before = latest_version(redis_client(), "small") or 0
    started = time.perf_counter()
    path = f"{SMALL}/{proposal['id']}/approve"
    client.post(path, json={"seal": proposal["seal"]}).raise_for_status()
    wait_until(lambda: (latest_version(redis_client(), "small") or 0) > before)
    return time.perf_counter() - started


def _stop(actor: Any, pk: int) -> None:
    """Stop the execution, and take its step for done: no pipeline acknowledges it here."""
    from controlplane.models import Execution, Proposal, Step  # noqa: PLC0415
    from controlplane.proposals.executions import control  # noqa: PLC0415

    proposal = Proposal.objects.get(pk=pk)

    def is_executing() -> bool:
        proposal.refresh_from_db()
        return str(proposal.state) == "executing"

    wait_until(is_executing)
    control.stop(actor, proposal, "measured")
    Step.objects.update(state="done")
    Execution.objects.exclude(lease_owner="").update(lease_owner="")


def _small_cluster(actor: Any) -> Any:
    from controlplane.models import Cluster, Node  # noqa: PLC0415
    from controlplane.queries.spec import QuerySpec  # noqa: PLC0415
    from controlplane.topology import placement, queries, streams  # noqa: PLC0415

    cluster = Cluster.objects.create(slug="small", name="small", slots=4, desired="running")
    for index in range(4):
        Node.objects.create(cluster=cluster, index=index, name=f"node {index}", capacity=500)
    schema = REPORT.to_json()
    specs = [streams.StreamSpec(f"s{i}", schema=schema) for i in range(50)]
    streams.register(actor, cluster, specs)
    wanted = [QuerySpec(f"q{i}", (f"s{i % 50}",), SUMMARY) for i in range(400)]
    queries.submit_many(actor, cluster, wanted)
    placement.place_pending(cluster.pk)
    return cluster


def _scatter(cluster: Any) -> None:
    """Move the queries to drawn nodes, so that a plan has moves."""
    from controlplane.models import Task  # noqa: PLC0415
    from controlplane.topology.apply import TopologyChange, apply  # noqa: PLC0415
    from controlplane.wire.routing.query_actions import MoveTasks  # noqa: PLC0415

    draw = np.random.default_rng()
    cluster.refresh_from_db()
    queries = Task.objects.filter(query__cluster=cluster).values_list("query_id", flat=True)
    apply(
        cluster,
        [MoveTasks(query, ((int(draw.integers(4)), 0, 1),)) for query in queries],
        TopologyChange("scattered"),
    )


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=100_000, help="of the snapshot")
    parser.add_argument("--streams", type=int, default=STREAMS, help="of the snapshot")
    parser.add_argument("--nodes", type=int, default=NODES, help="of the snapshot")
    parser.add_argument("--approvals", type=int, default=40)
    parser.add_argument("--postgres", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
