"""The time of the server for every page of the URL table, with many queries."""

import time
from collections.abc import Iterator
from statistics import median
from typing import Any, Final

from django.conf import settings
from django.test import Client
from django.utils import timezone

from benchmarks.api_filling import fill
from benchmarks.pages.arrivals import add_arrivals
from benchmarks.pages.report import Figure
from controlplane.access.roles import Actor
from controlplane.background.table_statistics import update_statistics
from controlplane.models import Cluster
from controlplane.planners.admission.cluster_forecast import keep_forecast
from controlplane.policies.store import policy_of
from controlplane.processes.serving.garbage_collection import tune_collector
from tests.controlplane.api.authorisation.addresses import accepts_get, pages
from tests.support.api_world import add_rows, address_of
from tests.support.cluster import placed_split

REQUESTS: Final = 5
# Pages whose names are printed.
SLOWEST: Final = 8
MOST_MS: Final = 150.0
PROPOSALS: Final = 1000


def measure_server(queries: int, streams: int) -> list[Figure]:
    """Return the largest median time of a page, and those of the slowest pages.

    The streams have an hour of arrivals, and the cluster the forecast of its watch loop.
    """
    settings.ALLOWED_HOSTS = ["testserver"]
    user, cluster = fill(queries, streams, PROPOSALS)
    by = Actor(user, "192.0.2.7")
    placed_split(by, cluster)
    add_rows(cluster, by)
    add_arrivals(cluster)
    # As the beat and the web process do, which have not created the rows.
    update_statistics()
    tune_collector()
    client = Client()
    client.force_login(user)
    taken = dict(_times(client, cluster))
    ordered = sorted(taken.items(), key=lambda item: -item[1][0])
    return [
        Figure(
            f"server time of {name}", seconds * 1000, MOST_MS, "ms",
            f"processor time {used * 1000:.0f} ms; of {len(taken)} pages",
        )
        for name, (seconds, used) in ordered[:SLOWEST]
    ]  # fmt: skip


def _times(client: Client, cluster: Cluster) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield the name of each page and its median times (s): by the clock, and of the processor.

    Pages without a row are left out.
    """
    for page in pages():
        if page.method != "get" or not accepts_get(page.path):
            continue
        path = address_of(page.path, cluster)
        # As the watch loop does, whose forecast is never old.
        keep_forecast(cluster, policy_of(cluster), timezone.now())
        answer: Any = client.get(path)
        if answer.status_code != 200:
            continue
        times = [_request(client, path) for _ in range(REQUESTS)]
        seconds, used = (median(column) for column in zip(*times, strict=True))
        yield page.name, (seconds, used)


def _request(client: Client, path: str) -> tuple[float, float]:
    """Return the time of a request (s) by the clock, and that of the processor."""
    started, used = time.perf_counter(), time.process_time()
    answer: Any = client.get(path)
    if getattr(answer, "streaming", False):
        for _ in answer.streaming_content:
            pass
    return time.perf_counter() - started, time.process_time() - used
