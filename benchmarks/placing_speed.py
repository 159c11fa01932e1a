"""How long a query waits for its node while ten thousand are live.

    python -m benchmarks.placing_speed [--live 10000] [--posts 40]

Starts a private Redis, a fresh SQLite database, web server and Celery worker with the commands of
`make run`, fills the cluster, then posts queries one by one and measures until the routing version
with the query is in Redis, where the pipeline reads it. Also a single placement.
"""

import argparse
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from benchmarks.control_plane import api_client, figures, fresh_weir, running_services, wait_until
from tests.support.texts import SUMMARY
from workers.demo.recording import REPORT

STREAMS: Final = 1437
NODES: Final = 4
BULK: Final = 1000


def main() -> None:
    options = parse_options()
    with fresh_weir() as data:
        actor, cluster = create_cluster(options.streams)
        started = time.perf_counter()
        fill(actor, cluster, options.live)
        print(f"filled with {options.live} live queries in {time.perf_counter() - started:.1f} s")
        _measure_placements(actor, cluster, options.posts)
        with running_services(data) as url:
            _measure_posts(actor, cluster, url, options.posts)


def create_cluster(stream_count: int) -> tuple[Any, Any]:
    """Create an admin and a cluster of four nodes with so many streams, and return both."""
    from django.contrib.auth.models import User  # noqa: PLC0415

    from controlplane.access.roles import Actor  # noqa: PLC0415
    from controlplane.models import Cluster, Node  # noqa: PLC0415

    actor = Actor(User.objects.create_superuser("bench"))
    cluster = Cluster.objects.create(slug="bench", name="bench", slots=NODES)
    for index in range(NODES):
        Node.objects.create(cluster=cluster, index=index, name=f"node {index}", capacity=500)
    register_streams(actor, cluster, stream_count)
    return actor, cluster


def fill_cluster(slug: str, stream_count: int, live: int) -> set[int]:
    """Register streams in a cluster, submit and place queries; return the ids of the streams."""
    from django.contrib.auth.models import User  # noqa: PLC0415

    from controlplane.access.roles import Actor  # noqa: PLC0415
    from controlplane.models import Cluster  # noqa: PLC0415

    actor, cluster = Actor(User.objects.create_superuser("bench")), Cluster.objects.get(slug=slug)
    register_streams(actor, cluster, stream_count)
    fill(actor, cluster, live)
    return set(cluster.streams.values_list("pk", flat=True))


def register_streams(actor: Any, cluster: Any, count: int) -> None:
    """Register so many streams of taxi reports."""
    from controlplane.topology import streams  # noqa: PLC0415

    schema = REPORT.to_json()
    specs = [
        streams.StreamSpec(f"s{i}", schema=schema, declared_rate=1 + i % 7) for i in range(count)
    ]
    streams.register(actor, cluster, specs)


def fill(actor: Any, cluster: Any, live: int) -> None:
    """Submit and place so many queries."""
    from controlplane.topology import placement, queries  # noqa: PLC0415

    specs = _specs(cluster, "live", live, seed=1)
    for begin in range(0, live, BULK):
        queries.submit_many(actor, cluster, specs[begin : begin + BULK])
        placement.place_pending(cluster.pk)


def _specs(cluster: Any, prefix: str, count: int, seed: int) -> list[Any]:
    """Return queries over 5 streams on average, stream popularity by Zipf's law."""
    from controlplane.queries.spec import QuerySpec  # noqa: PLC0415

    draw = np.random.default_rng(seed)
    streams = cluster.streams.count()
    weights = 1 / np.arange(1, streams + 1)
    weights /= weights.sum()
    sizes = np.minimum(1 + draw.poisson(4.36, count), streams)
    return [
        QuerySpec(
            f"{prefix}-{number}",
            tuple(f"s{i}" for i in draw.choice(streams, size, replace=False, p=weights)),
            SUMMARY,
        )
        for number, size in enumerate(sizes)
    ]


def _measure_placements(actor: Any, cluster: Any, count: int) -> None:
    from controlplane.topology import placement, queries  # noqa: PLC0415

    taken = []
    for spec in _specs(cluster, "alone", count, seed=2):
        queries.submit(actor, cluster, spec)
        started = time.perf_counter()
        placement.place_pending(cluster.pk)
        taken.append(time.perf_counter() - started)
    print(f"placement of one query in this process: {figures(taken)}")


def _measure_posts(actor: Any, cluster: Any, url: str, count: int) -> None:
    answered, routed = [], []
    with api_client(url, actor.user) as client:
        for spec in _specs(cluster, "post", count, seed=3):
            before = _version(cluster.slug)
            body = {"name": spec.name, "streams": list(spec.streams), "text": spec.text.to_json()}
            started = time.perf_counter()
            answer = client.post(f"/api/v1/clusters/{cluster.slug}/queries", json=body)
            answer.raise_for_status()
            answered.append(time.perf_counter() - started)
            wait_until(lambda last=before: _version(cluster.slug) > last)  # type: ignore[misc]
            routed.append(time.perf_counter() - started)
    print(f"POST until answered:                    {figures(answered)}")
    print(f"POST until routed in Redis:             {figures(routed)}")


def _version(slug: str) -> int:
    from controlplane.connections import redis_client  # noqa: PLC0415
    from controlplane.wire.routing.publication import latest_version  # noqa: PLC0415

    return latest_version(redis_client(), slug) or 0


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--live", type=int, default=10_000, help="queries")
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--posts", type=int, default=40)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
