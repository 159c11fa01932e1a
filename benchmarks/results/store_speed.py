"""What the results cost: windows/s of the whole sink into both databases, and a page of windows.

    .venv/bin/python -m benchmarks.results.store_speed [--windows 1000000]

One JSON object per measure. A batch has 60,000 changed windows with three aggregates; of each
database windows that are new, changed, and written again, per second and per second of this
process's processor time. A page is a GET over HTTP to the web process with the command of
`make run`, to the last byte of the answer; `--windows`: how many windows the query has. Redis and
databases are its own, in a temporary directory.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.control_plane import api_client, fresh_weir, running_services

KEYS: Final = 1_000
QUERY: Final = 1
HOUR_MS: Final = 3_600_000
BATCH: Final = 60_000
PAGES: Final = 15
RESULTS: Final = "/api/v1/clusters/bench/queries/q/results?limit=1000"


def main() -> None:
    count = max(KEYS, parse_options().windows)
    with fresh_weir() as data:
        for name, measured in measures(count, data):
            print(json.dumps({"measure": name, **measured}), flush=True)


def measures(count: int, folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each measure's name and figures."""
    from django.conf import settings  # noqa: PLC0415 - Django is set up by now
    from django.contrib.auth.models import User  # noqa: PLC0415

    from controlplane.wire.results.database import ConnectedDatabase  # noqa: PLC0415
    from tests.support.postgres import running_postgres  # noqa: PLC0415

    yield "sqlite", written(ConnectedDatabase(f"sqlite:///{folder / 'bench.sqlite3'}"))
    with running_postgres() as url:
        yield "postgresql", written(ConnectedDatabase(url))
    made_query()
    fill(ConnectedDatabase(settings.RESULTS_URL), count // KEYS)
    user = User.objects.create_superuser("bench")
    with running_services(folder, ["web"]) as url, api_client(url, user) as client:
        yield "page", {"windows": count // KEYS * KEYS, **paged(client, count // KEYS)}


def made_query() -> Any:
    """Return a query over sensors that is in the database."""
    from django.utils import timezone  # noqa: PLC0415

    from controlplane.models import Cluster, Query, Stream  # noqa: PLC0415
    from controlplane.wire.query_text import QueryText  # noqa: PLC0415

    cluster = Cluster.objects.create(slug="bench", name="bench", slots=1)
    columns = [{"name": "ts", "type": "timestamp", "nullable": False},
               {"name": "v", "type": "int64"}, {"name": "k", "type": "int64"}]  # fmt: skip
    schema = {"columns": columns, "event_time": "ts"}
    stream = Stream.objects.create(cluster=cluster, name="s", schema=schema)
    text = QueryText({"n": "count(*)", "total": "sum(v)", "mean": "mean(v)"}, 3600.0, key=("k",))
    query = Query.objects.create(
        pk=QUERY, cluster=cluster, name="q", state="running", text=text.to_text(), window_s=3600.0,
        submitted_at=timezone.now(), retention_windows=2 * 10**9, retention_s=2**31 - 1,
    )  # fmt: skip
    query.streams.add(stream)
    return query


def computed() -> Any:
    """Return what the query computes."""
    from controlplane.wire.language.tree import Kind  # noqa: PLC0415
    from controlplane.wire.query import computation_of  # noqa: PLC0415
    from controlplane.wire.query_text import QueryText  # noqa: PLC0415

    text = QueryText({"n": "count(*)", "total": "sum(v)", "mean": "mean(v)"}, 3600.0, key=("k",))
    return computation_of(text, {"ts": Kind.TIME, "v": Kind.INT, "k": Kind.INT})


def table_of(first: int, rows: int, added: int = 0) -> tuple[str, Any]:
    """Return so many windows of a thousand keys as nodes emit them."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    from controlplane.wire.aggregates.layout import layout_of  # noqa: PLC0415
    from controlplane.wire.aggregates.state_schema import schema_named, schema_names  # noqa: PLC0415

    name = schema_names(layout_of(computed()))[0]
    schema, index = schema_named(name).arrow, np.arange(rows)
    columns: dict[str, Any] = {field.name: pa.array(index + added) for field in schema}
    zeros: Any = pa.array(np.zeros(rows, np.int64))
    columns |= dict.fromkeys(("run", "task", "stream"), zeros)
    columns |= {"query": pa.array(np.full(rows, QUERY)), "k0": pa.array(index % KEYS),
                "pane": pa.array((first + index // KEYS) * HOUR_MS)}  # fmt: skip
    casted = [columns[field.name].cast(pa.decimal128(20, 0)).cast(field.type)
              if pa.types.is_decimal(field.type) else columns[field.name].cast(field.type)
              for field in schema]  # fmt: skip
    return name, pa.table(casted, schema)


def writer_of(database: Any) -> Callable[[int, tuple[str, Any]], None]:
    """Return what writes the windows of one batch."""
    from controlplane.wire.results.finalized import ResultQuery  # noqa: PLC0415
    from controlplane.wire.results.tables import create_tables  # noqa: PLC0415
    from controlplane.wire.results.writer import WindowWriter  # noqa: PLC0415

    query = ResultQuery.of(computed(), 1, 0)
    database.run(lambda cursor: create_tables(cursor, is_postgres=database.is_postgres))

    def queries(wanted: Collection[int]) -> dict[int, ResultQuery]:
        return dict.fromkeys(wanted, query)

    def write(batch: int, table: tuple[str, Any]) -> None:
        writer = WindowWriter(database, "bench")
        writer.take(batch, [table], queries)
        writer.flush()

    return write


def written(database: Any, batches: int = 8) -> dict[str, Any]:
    """Write batches of new windows, then of changed ones, and these again."""
    write, report = writer_of(database), dict[str, Any]()
    for index, (name, added) in enumerate((("new", 0), ("changed", 5), ("repeated", 5))):
        tables = [table_of(batch * BATCH // KEYS, BATCH, added) for batch in range(batches)]
        wall, processor = time.perf_counter(), time.process_time()
        for batch, table in enumerate(tables):
            write(batch + min(index, 1) * batches, table)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        report[f"{name}_per_s"] = round(batches * BATCH / wall)
        report[f"{name}_per_processor_s"] = round(batches * BATCH / processor)
    return report


def fill(database: Any, hours: int) -> None:
    """Write the windows of so many hours."""
    write = writer_of(database)
    for batch, first in enumerate(range(0, hours, BATCH // KEYS)):
        write(batch, table_of(first, min(BATCH // KEYS, hours - first) * KEYS))


def paged(client: Any, hours: int) -> dict[str, Any]:
    """Read pages of a thousand: the newest, one in the middle, the oldest, of one key."""

    def call(filters: str) -> Any:
        return client.get(RESULTS + filters).raise_for_status()

    report: dict[str, Any] = {"load": round(os.getloadavg()[0], 1)}
    every = {
        "newest": "",
        "middle": f"&to={hours // 2 * HOUR_MS}",
        "oldest": "&order=oldest",
        "one_key": "&key=7",
    }
    for name, filters in every.items():
        rows = len(call(filters).json()["windows"])
        times = [timed(partial(call, filters)) for _ in range(PAGES)]
        report |= {f"{name}_ms": round(statistics.median(times), 1), f"{name}_windows": rows}
    return report


def timed(work: Callable[[], Any]) -> float:
    """Return how many ms something takes."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--windows", type=int, default=1_000_000, help=f"{KEYS} or more")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
