"""Results per second that a sink writes to files, tables, topics of Kafka and a stream.

    python -m benchmarks.results.sink_speed [--rows 200000]

A follower of this process reads final windows of an SQLite database, three columns of key and three
aggregates each, and writes them; PostgreSQL is that of POSTGRES, the broker of Kafka Tansu, the
registry of schemas that of the tests.
"""

import argparse
import json
import os
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.control_plane import fresh_weir
from controlplane.wire.network.destinations import LIST
from controlplane.wire.results.tables import COLUMNS
from tests.support.postgres import running_postgres
from tests.support.registry import running_registry
from tests.support.topics import create_topic, running_broker


def parse_options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    return parser.parse_args(words)


def main() -> None:
    rows: int = parse_options().rows
    with (
        fresh_weir() as folder,
        running_postgres() as url,
        running_broker() as broker,
        running_registry() as registry,
    ):
        query = filled(rows)
        parts: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
        words = f"unix://{parts['host']} {folder.as_uri()} kafka://{broker} {registry.url}"
        os.environ[LIST] += f" {words}"
        table = {"host": parts["host"], "user": parts["user"], "database": parts["dbname"],
                 "tls": "disable", "table": "readings"}  # fmt: skip
        files = {"url": (Path(folder) / "lake").as_uri()}
        delta = {"url": (Path(folder) / "delta").as_uri()}
        iceberg = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "table": "shop.readings",
                   "warehouse": folder.as_uri()}  # fmt: skip
        topic = {"servers": broker, "topic": "readings"}
        create_topic(broker, "readings", 3)
        for kind, settings in (
            ("parquet", files), ("delta", delta), ("iceberg", iceberg), ("postgres", table),
            ("kafka", topic), ("kafka", topic | {"format": "avro"}),
            ("kafka", topic | {"format": "protobuf", "registry": registry.url}),
            ("stream", {"stream": "results"}),
        ):  # fmt: skip
            # Its module is imported once.
            written(query, kind, settings, 1)
            started = time.process_time()
            seconds = written(query, kind, settings, rows)
            of_processor = rows / (time.process_time() - started)
            name = settings.get("format", kind)
            print(f"{name}: {rows / seconds:,.0f} results/s ({seconds:.1f} s), "
                  f"{of_processor:,.0f} per second of the processor")  # fmt: skip


def filled(rows: int) -> Any:
    """Return a query with so many final windows."""
    from django.db import transaction  # noqa: PLC0415 - after the set-up of Django
    from django.utils import timezone  # noqa: PLC0415

    from controlplane.models import Cluster, Query, QueryStream, Stream  # noqa: PLC0415
    from controlplane.results.database import RESULTS, results_cursor  # noqa: PLC0415
    from controlplane.sinks.columns import result_table  # noqa: PLC0415
    from controlplane.sinks.network import derived_schema  # noqa: PLC0415
    from tests.support.schemas import READINGS  # noqa: PLC0415
    from tests.support.sinks import TEXT  # noqa: PLC0415

    cluster = Cluster.objects.create(slug="bench", name="Bench")
    stream = Stream.objects.create(cluster=cluster, name="m0", schema=READINGS.to_json())
    query = Query.objects.create(
        cluster=cluster, name="q", text=json.dumps(TEXT.to_json()), window_s=60,
        submitted_at=timezone.now(), state="running",
    )  # fmt: skip
    QueryStream.objects.create(query=query, stream=stream)
    schema = derived_schema(query, result_table(query), "final_only").to_json()
    Stream.objects.create(cluster=cluster, name="results", schema=schema)
    stored = [
        (query.pk, n // 1000 * 60_000, n.to_bytes(8, "big"), f'["station {n}",true,{stream.pk}]',
         f'[{n},{{"decimal":"{n}.25"}},{n}.5]', n, None, b"", None, 1, n + 1, n)
        for n in range(rows)
    ]  # fmt: skip
    marks = ", ".join(["%s"] * len(COLUMNS))
    with transaction.atomic(RESULTS), results_cursor() as cursor:
        cursor.executemany(f"INSERT INTO results_window VALUES ({marks})", stored)
        cursor.execute("INSERT INTO results_cluster VALUES ('bench', %s)", [rows])
        values = [query.pk, rows * 60_000]
        cursor.execute("INSERT INTO results_query VALUES (%s, 'bench', %s, FALSE)", values)
    return query


def written(query: Any, kind: str, settings: dict[str, Any], rows: int) -> float:
    """Return the seconds in which a new sink writes all results."""
    from django.utils import timezone  # noqa: PLC0415

    from controlplane.models import Sink  # noqa: PLC0415
    from controlplane.results.feed import FeedPlace  # noqa: PLC0415
    from controlplane.sinks.catalog import KINDS  # noqa: PLC0415
    from controlplane.sinks.process import SinkFollower  # noqa: PLC0415

    now = timezone.now()
    Sink.objects.all().delete()
    sink = Sink.objects.create(
        query=query, name=uuid.uuid4().hex, kind=kind, uid=uuid.uuid4(),
        position=str(FeedPlace(0, b"")), created_by="bench",
        settings=KINDS[kind].checked(settings).model_dump(mode="json"),
        caught_up_at=now.replace(year=2020), created_at=now,
    )  # fmt: skip
    follower = SinkFollower(sink.pk)
    started = time.monotonic()
    while sink.written < rows:
        # The last batch of files is not collected.
        Sink.objects.filter(pk=sink.pk).update(written_at=None)
        follower.step(time.sleep)
        sink.refresh_from_db()
        assert not sink.error, sink.error
    return time.monotonic() - started


if __name__ == "__main__":
    main()
