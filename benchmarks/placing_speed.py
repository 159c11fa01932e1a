"""How long a query waits for its node while ten thousand are live.

    python -m benchmarks.placing_speed [--live 10000] [--posts 40]

Starts a private Redis, a fresh SQLite database, uvicorn and a Celery worker of two processes, as
`make run` does, fills the cluster, then posts queries one by one and measures until the routing
version with the query stands in Redis, where the pipeline reads it. Also the drain by itself.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.control_plane import private_redis, running_services, tell, until
from tests.support.texts import SUMMARY
from workers.demo.schema import REPORT

STREAMS = 1437
NODES = 4
BULK = 1000


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
            _run(arguments.live, arguments.posts, data)


def _run(live: int, posts: int, data: Path) -> None:
    import django  # noqa: PLC0415 - needs the environment

    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    call_command("migrate_all", verbosity=0)
    actor, cluster = _cluster()
    begun = time.perf_counter()
    _fill(actor, cluster, live)
    print(f"filled with {live} live queries in {time.perf_counter() - begun:.1f} s")
    _measure_drains(actor, cluster, posts)
    with running_services(data) as (url, ready):
        ready()
        _measure_posts(actor, cluster, url, posts)


def _cluster() -> tuple[Any, Any]:
    from django.contrib.auth.models import User  # noqa: PLC0415

    from controlplane.models import Cluster, Node  # noqa: PLC0415
    from controlplane.services import streams  # noqa: PLC0415
    from controlplane.services.access import Actor  # noqa: PLC0415

    actor = Actor(User.objects.create_superuser("bench"))
    cluster = Cluster.objects.create(slug="bench", name="bench", slots=NODES)
    for index in range(NODES):
        Node.objects.create(cluster=cluster, index=index, name=f"node {index}", capacity=500)
    schema = REPORT.to_json()
    specs = [
        streams.StreamSpec(f"s{i}", schema=schema, declared_rate=1 + i % 7) for i in range(STREAMS)
    ]
    streams.register(actor, cluster, specs)
    return actor, cluster


def _fill(actor: Any, cluster: Any, live: int) -> None:
    from controlplane.services import placing, queries  # noqa: PLC0415

    specs = _specs("live", live, seed=1)
    for begin in range(0, live, BULK):
        queries.submit_many(actor, cluster, specs[begin : begin + BULK])
        placing.drain(cluster.pk)


def _specs(prefix: str, count: int, seed: int) -> list[Any]:
    """Return queries over 5 streams on average, stream popularity by Zipf's law."""
    from controlplane.services.queries import QuerySpec  # noqa: PLC0415

    draw = np.random.default_rng(seed)
    weights = 1 / np.arange(1, STREAMS + 1)
    weights /= weights.sum()
    sizes = 1 + draw.poisson(4.36, count)
    return [
        QuerySpec(
            f"{prefix}-{number}",
            tuple(f"s{i}" for i in draw.choice(STREAMS, size, replace=False, p=weights)),
            SUMMARY,
        )
        for number, size in enumerate(sizes)
    ]


def _measure_drains(actor: Any, cluster: Any, count: int) -> None:
    from controlplane.services import placing, queries  # noqa: PLC0415

    taken = []
    for spec in _specs("drain", count, seed=2):
        queries.submit(actor, cluster, spec)
        begun = time.perf_counter()
        placing.drain(cluster.pk)
        taken.append(time.perf_counter() - begun)
    tell("drain of one query, in this process", taken)


def _measure_posts(actor: Any, cluster: Any, url: str, count: int) -> None:
    import httpx  # noqa: PLC0415

    from controlplane.connections import redis_client  # noqa: PLC0415
    from controlplane.services import tokens  # noqa: PLC0415
    from controlplane.wire.publish import latest_version  # noqa: PLC0415

    headers = {"Authorization": f"Bearer {tokens.create(actor.user, 'bench')}"}
    answered, routed = [], []
    with httpx.Client(base_url=url, headers=headers, timeout=30) as client:
        for spec in _specs("post", count, seed=3):
            before = latest_version(redis_client(), cluster.slug) or 0
            body = {"name": spec.name, "streams": list(spec.streams)}
            begun = time.perf_counter()
            answer = client.post(f"/api/v1/clusters/{cluster.slug}/queries", json=body)
            answer.raise_for_status()
            answered.append(time.perf_counter() - begun)
            until(lambda last=before: _version(cluster.slug) > last)  # type: ignore[misc]
            routed.append(time.perf_counter() - begun)
    tell("POST answered", answered)
    tell("POST until routed in Redis", routed)


def _version(slug: str) -> int:
    from controlplane.connections import redis_client  # noqa: PLC0415
    from controlplane.wire.publish import latest_version  # noqa: PLC0415

    return latest_version(redis_client(), slug) or 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--live", type=int, default=10_000)
    parser.add_argument("--posts", type=int, default=40)
    return parser.parse_args()


if __name__ == "__main__":
    main()
