"""The page of the fleet with many clusters: server time of the page and of its live parts.

    python -m benchmarks.pages.fleet_speed [--clusters 100] [--repeats 30] [--postgres]

On a fresh database, in one process without a network. Each cluster has ten minutes of points of its
measures, every third one an alert, every tenth one exceeds a limit. Also counts the processor time
of the process, which other load on the machine does not change.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from benchmarks.control_plane import figures, fresh_weir

_EVERY_ALERT = 3
_EVERY_EXCEEDED = 10


def main() -> None:
    options = parse_options()
    with fresh_weir(postgres=options.postgres):
        from controlplane.installation.assets.collection import collect_static  # noqa: PLC0415

        collect_static()
        client = _client()
        _fill(options.clusters)
        for title, headers, path in (
            ("page", {}, "/"),
            ("live parts", {"HTTP_HX_REQUEST": "true"}, "/"),
            ("navigation", {"HTTP_HX_REQUEST": "true"}, "/navigation/"),
        ):
            call = partial(client.get, path, **headers)
            wall, used = _measured(call, options.repeats)
            print(f"{title:<12} server time    {figures(wall)}")
            print(f"{title:<12} processor time {figures(used)}")


def _measured(call: Callable[[], Any], repeats: int) -> tuple[list[float], list[float]]:
    """Return the durations and the processor times of repeated calls in s, after a first one."""
    wall, used = [], []
    for place in range(repeats + 1):
        started, started_used = time.perf_counter(), time.process_time()
        answer = call()
        if answer.status_code != 200:
            raise RuntimeError(f"status {answer.status_code}")
        if place:
            wall.append(time.perf_counter() - started)
            used.append(time.process_time() - started_used)
    return wall, used


def _client() -> Any:
    from django.contrib.auth.models import User  # noqa: PLC0415 - needs Django set up
    from django.test import Client  # noqa: PLC0415

    user = User.objects.create_superuser("bench")
    client = Client(SERVER_NAME="localhost")
    client.force_login(user)
    return client


def _fill(clusters: int) -> None:
    from django.db import transaction  # noqa: PLC0415 - needs Django set up

    from tests.support.alerting import firing, fleet_cluster  # noqa: PLC0415

    with transaction.atomic():
        for number in range(clusters):
            is_exceeded = number % _EVERY_EXCEEDED == 0
            latency = 12_000.0 if is_exceeded else 900.0
            cluster = fleet_cluster(f"bench-{number}", latency_p95=latency)
            if number % _EVERY_ALERT == 0:
                firing(cluster)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--postgres", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
