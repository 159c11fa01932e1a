"""Server time of the list pages with 100,000 queries, audit entries and decisions.

    python -m benchmarks.pages.lists [--queries 100000] [--entries 100000] [--decisions 30000]

On a fresh SQLite database, in one process, through Django's test client: the time of the view with
its template, without the web server. Prints for each address the least wall and processor time of
some requests, and the number of SQL statements.
"""

import argparse
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import numpy as np

from benchmarks.api_filling import BATCH, fill
from benchmarks.control_plane import fresh_weir

REPEATS: Final = 5
_QUERIES: Final = "/clusters/bench/queries/"
_STREAMS: Final = "/clusters/bench/streams/"
_DECISIONS: Final = "/clusters/bench/decisions/"
ADDRESSES: Final = (
    _QUERIES, f"{_QUERIES}?filter=", f"{_QUERIES}?order=-evaluations", f"{_QUERIES}?order=-latency",
    f"{_QUERIES}?order=-processor", f"{_QUERIES}?filter=processor>10",
    f"{_QUERIES}?order=-bytes", f"{_QUERIES}?order=-shared", f"{_QUERIES}?order=name",
    f"{_QUERIES}?order=node", f"{_QUERIES}?filter=state:live+node:3+evaluations>500",
    f"{_QUERIES}?filter=state:failed&order=-evaluations", f"{_QUERIES}?filter=query-0991",
    f"{_QUERIES}?page=900", _STREAMS, f"{_STREAMS}?order=-queries", f"{_STREAMS}?order=-bytes",
    f"{_STREAMS}?order=-drops", "/clusters/bench/proposals/",
    "/clusters/bench/proposals/?filter=actions>10", "/audit/", "/audit/?range=24h",
    "/audit/?range=30d", "/audit/?range=30d&fold=no", "/audit/?range=30d&filter=who:relay",
    _DECISIONS, f"{_DECISIONS}?range=30d", f"{_DECISIONS}?range=30d&fold=no",
)  # fmt: skip


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--decisions", type=int, default=30_000)
    return parser.parse_args(arguments)


def main() -> None:
    options = parse_options()
    with fresh_weir():
        from django.conf import settings  # noqa: PLC0415
        from django.test import Client  # noqa: PLC0415

        from controlplane.background.table_statistics import update_statistics  # noqa: PLC0415
        from controlplane.processes.serving.garbage_collection import tune_collector  # noqa: PLC0415

        settings.ALLOWED_HOSTS = ["testserver"]
        user, cluster = fill(options.queries, options.streams, 1000)
        _add_costs(cluster)
        _add_entries(cluster, options.entries)
        _add_decisions(cluster, options.decisions)
        # As the beat and the web process do, which have not created the rows.
        update_statistics()
        tune_collector()
        client = Client()
        client.force_login(user)
        for address in ADDRESSES:
            print(_measured(client, address), flush=True)


def _measured(client: Any, address: str) -> str:
    from django.db import connection  # noqa: PLC0415
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

    taken = []
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(address)
    # The next request empties the log of statements.
    statements = len(captured)
    assert answer.status_code == 200, answer.content[:500]
    for _ in range(REPEATS):
        wall, processor = time.perf_counter(), time.process_time()
        client.get(address)
        taken.append((time.perf_counter() - wall, time.process_time() - processor))
    wall, processor = (1000 * min(figure) for figure in zip(*taken, strict=True))
    return f"{address:58} {wall:5.0f} ms, processor {processor:5.0f} ms, {statements:2} SQL"


def _add_costs(cluster: Any) -> None:
    from controlplane.catalog.query_costs import QueryCost, write_costs  # noqa: PLC0415
    from controlplane.models import Query  # noqa: PLC0415

    draw = np.random.default_rng(2)
    ids = Query.objects.filter(cluster=cluster, state="running").values_list("pk", flat=True)
    figures = draw.integers(1, 90_000, (len(ids), 5)).tolist()
    costs = {
        pk: QueryCost(float(records), float(latency), size, shared, processor / 5_000)
        for pk, (records, latency, size, shared, processor) in zip(ids, figures, strict=True)
    }
    write_costs(costs, cluster.created_at)


def _add_entries(cluster: Any, count: int) -> None:
    from django.utils import timezone  # noqa: PLC0415

    from controlplane.models import AuditEntry  # noqa: PLC0415

    now = timezone.now()
    actors, actions = ("bench", "weir", "relay"), ("query.submit", "query.end", "policy.change")
    AuditEntry.objects.bulk_create(
        (
            AuditEntry(
                at=now - timedelta(seconds=20 * i), actor=actors[i % 3], cluster=cluster,
                action=actions[i // 7 % 3], object=f"query-{i}",
            )
            for i in range(count)
        ),
        batch_size=BATCH,
    )  # fmt: skip


def _add_decisions(cluster: Any, count: int) -> None:
    from django.utils import timezone  # noqa: PLC0415

    from controlplane.models import Decision  # noqa: PLC0415

    now = timezone.now()
    moments = (now - timedelta(seconds=60 * i) for i in range(count))
    Decision.objects.bulk_create(
        (
            Decision(
                cluster=cluster, loop="imbalance", code=("acted", "within")[i % 2], text="t",
                first_at=moment, last_at=moment,
            )
            for i, moment in enumerate(moments)
        ),
        batch_size=BATCH,
    )  # fmt: skip


if __name__ == "__main__":
    main()
