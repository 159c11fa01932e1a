"""What the result store costs: a changed row, a page of a thousand windows, a window's archiving.

    .venv/bin/python -m benchmarks.result_store_speed [--windows 1000000]

One JSON object per measure, with medians in ms or µs. A page is a GET over HTTP to the web process
with the command of `make run`, to the last byte of the answer. Redis and databases are its own, in
a temporary directory; `parquet`: the same windows in files, for comparison.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.control_plane import api_client, fresh_weir, running_services

KEYS = 1_000
QUERY = 1
HOUR_MS = 3_600_000
PAGES = 15
RESULTS = "/api/v1/clusters/bench/queries/q/results?limit=1000"


def main() -> None:
    count = max(KEYS, parse_options().windows)
    with fresh_weir() as data:
        for name, measured in measures(count, data):
            print(json.dumps({"measure": name, **measured}), flush=True)


def measures(count: int, folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each measure's name and figures."""
    from django.contrib.auth.models import User  # noqa: PLC0415 - Django is set up by now

    from controlplane.connections import redis_client  # noqa: PLC0415

    query, hours = made_query(), count // KEYS
    yield "write", written(query, hours)
    memory: Any = redis_client().info("memory")
    yield "redis", {"bytes_per_window": round(memory["used_memory_dataset"] / count)}
    user = User.objects.create_superuser("bench")
    with running_services(folder, ["web"]) as url, api_client(url, user) as client:
        yield "page_of_redis", paged(client, hours)
        yield "archive", archived(query, hours * KEYS)
        yield "page_of_archive", paged(client, hours)
    yield "parquet", parquet(count, folder)


def made_query() -> Any:
    """Return a query over sensors that is in the database."""
    from django.utils import timezone  # noqa: PLC0415

    from controlplane.models import Cluster, Query, Stream  # noqa: PLC0415
    from controlplane.wire.query_text import QueryText  # noqa: PLC0415

    cluster = Cluster.objects.create(slug="bench", name="bench", slots=1)
    schema = {"columns": [{"name": "ts", "type": "timestamp", "nullable": False}],
              "event_time": "ts"}  # fmt: skip
    stream = Stream.objects.create(cluster=cluster, name="s", schema=schema)
    text = QueryText({"n": "count(*)", "last": "max(ts)"}, 3600.0, key=("stream",))
    query = Query.objects.create(
        pk=QUERY, cluster=cluster, name="q", state="running", text=text.to_text(), window_s=3600.0,
        submitted_at=timezone.now(), retention_windows=2 * 10**9, retention_s=2**31 - 1,
    )  # fmt: skip
    query.streams.add(stream)
    return query


def table_of(query: Any, first: int, keys: int = KEYS) -> Any:
    """Return an hour's windows of so many keys as a node gives them out."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    from controlplane.catalog.computations import computation_of_query  # noqa: PLC0415
    from controlplane.wire.aggregates.layout import layout_of  # noqa: PLC0415
    from controlplane.wire.aggregates.state_schema import schema_named, schema_names  # noqa: PLC0415

    name = schema_names(layout_of(computation_of_query(query)))[0]
    schema = schema_named(name).arrow
    columns = {field.name: pa.array(np.zeros(keys, np.int64)).cast(field.type) for field in schema}
    columns |= {"query": pa.array(np.full(keys, query.pk)), "k0": pa.array(np.arange(keys)),
                "pane": pa.array(np.full(keys, first * HOUR_MS)),
                "s0": pa.array(np.arange(keys))}  # fmt: skip
    return name, pa.table([columns[field.name] for field in schema], schema)


def written(query: Any, hours: int, changes: int = 50) -> dict[str, Any]:
    """Write the windows of so many hours, then change the newest of each key so many times."""
    from controlplane.connections import redis_client  # noqa: PLC0415
    from controlplane.wire.results.write import WindowChanges, write  # noqa: PLC0415

    client = redis_client()

    def put(batch: int, table: Any) -> float:
        return timed(lambda: write(client, "bench", batch, WindowChanges([table])))

    fresh = [put(hour, table_of(query, hour)) for hour in range(hours)]
    again = [put(hours + change, table_of(query, hours - 1)) for change in range(changes)]
    few = [
        put(hours + changes + change, table_of(query, hours - 1, 1))
        for change in range(4 * changes)
    ]
    return {
        "us_per_new_row": round(statistics.median(fresh) * 1000 / KEYS, 2),
        "us_per_changed_row": round(statistics.median(again) * 1000 / KEYS, 2),
        "us_of_a_query_with_one_row": round(statistics.median(few) * 1000, 1),
    }


def paged(client: Any, hours: int) -> dict[str, Any]:
    """Read pages of a thousand: the newest, one in the middle, of one key."""

    def call(filters: str) -> Any:
        return client.get(RESULTS + filters).raise_for_status()

    report: dict[str, Any] = {}
    every = {
        "newest": "",
        "middle": f"&to={hours // 2 * HOUR_MS}",
        "oldest_first": "&order=oldest",
        "one_key": "&key=s",
    }
    for name, filters in every.items():
        rows = len(call(filters).json()["windows"])
        times = [timed(partial(call, filters)) for _ in range(PAGES)]
        report[f"{name}_ms"] = round(statistics.median(times), 1)
        report[f"{name}_windows"] = rows
    return report


def archived(query: Any, count: int) -> dict[str, Any]:
    """Move all windows to the archive."""
    from controlplane.connections import redis_client  # noqa: PLC0415
    from controlplane.results import archiving  # noqa: PLC0415
    from controlplane.wire.results import final_windows  # noqa: PLC0415

    client, known = redis_client(), archiving.ArchiverState()
    final_windows.freeze(client, "bench", {query.pk: final_windows.FOREVER}, 1)
    started = time.monotonic()
    archiving_pass = archiving.Pass(client, query.cluster, known, 0, started + 3600)
    moved, _ = archiving.move_windows(archiving_pass, [query.pk])
    seconds = time.monotonic() - started
    return {"windows": moved, "windows_per_s": round(moved / seconds), "all": moved == count}


def parquet(count: int, folder: Path) -> dict[str, Any]:
    """Write the same windows as files of 1,000, and read a page out of all of them."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.dataset as ds  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    place = folder / "parquet"
    place.mkdir()
    files = min(count // KEYS, 1_000)
    started = time.monotonic()
    for number in range(files):
        rows: dict[str, Any] = {
            "start_ms": [number * HOUR_MS] * KEYS,
            "key": [f'["{key}"]' for key in range(KEYS)],
            "values": ["[12,34]"] * KEYS,
        }
        pq.write_table(pa.table(rows), place / f"{number:06}.parquet")
    rate = files * KEYS / (time.monotonic() - started)

    def page() -> None:
        table = ds.dataset(place).to_table(filter=ds.field("start_ms") == files // 2 * HOUR_MS)
        assert len(table) == KEYS

    def one_key() -> None:
        ds.dataset(place).to_table(filter=ds.field("key") == '["7"]')

    size = sum(file.stat().st_size for file in place.iterdir()) / (files * KEYS)
    return {
        "windows_per_s": round(rate),
        "page_ms": round(statistics.median(timed(page) for _ in range(3)), 1),
        "one_key_ms": round(statistics.median(timed(one_key) for _ in range(3)), 1),
        "bytes_per_window": round(size, 1),
    }


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
