"""A network of queries on Spark, and every kind of destination, while their parts are killed.

Requests per minute to a web site and mentions of companies, in windows that are open for hours. A
query over the mentions has its results in a stream that another query reads. Driver, process of
sinks and Redis are killed with -9 at seeded moments, and a destination is away; then each
destination has what DuckDB computes of the records.
"""

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest
import redis
from django.utils import timezone

from controlplane.models import Sink, Stream
from controlplane.queries.spec import QuerySpec
from controlplane.results.database import results_cursor
from controlplane.results.finality import update_finality
from controlplane.sinks import service
from controlplane.sinks.service import SinkSpec
from controlplane.sinks.status import statuses_of
from controlplane.topology import placement, queries, streams
from controlplane.topology.streams import StreamSpec
from controlplane.wire.producer import Producer
from controlplane.wire.query_text import QueryText
from tests.end_to_end.data_sets import SHARED
from tests.support.cluster import actor, small_cluster
from tests.support.destinations import list_destinations
from tests.support.driver import Driver
from tests.support.lake import FILES, Place
from tests.support.nightly import NIGHTLY
from tests.support.postgres import postgres_with_outages, write_data_directory
from tests.support.receiver import Receiver, receiving
from tests.support.redis_server import RedisServer
from tests.support.sink_process import database_url, environment_of, sinks_running, until
from tests.support.topic_results import messages_in
from tests.support.topics import broker_with_outages, create_topic

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.spark,
    pytest.mark.nightly("losses"),
]
HOUR: Final = 3600.0
LOAD = QueryText({"n": "count(*)", "total": "sum(value)", "top": "max(value)"}, 6 * HOUR)
MENTIONS = QueryText(
    {"n": "count(*)", "total": "sum(value)", "top": "max(value)"}, 4 * HOUR, key=("series",)
)
# Over the results of MENTIONS.
DAYS = QueryText(
    {"n": "sum(n)", "total": "sum(total)", "top": "max(top)"}, 24 * HOUR, key=("series",)
)
SCHEMA: Final = {
    "columns": [{"name": "at", "type": "timestamp(ms)", "nullable": False},
                {"name": "series", "type": "string"}, {"name": "value", "type": "int64"}],
    "event_time": "at", "idle_after_s": 86_400,
}  # fmt: skip
CHUNKS: Final = 12
# Records after all others, which let their windows be final.
END: Final = "end"
DAY_MS: Final = 86_400_000
FINAL: Final = (
    "SELECT count(*) FROM results_window JOIN results_query USING (query_id)"
    " WHERE start_ms <= final_ms AND value_json NOT LIKE '%%-1]'"
)
Row = tuple[Any, ...]


def requests() -> pa.Table:
    """Return requests per minute of eight days."""
    table: Any = pyarrow.csv.read_csv(SHARED / "worldcup98_requests_per_minute.csv.gz")
    return _records(table.slice(0, 11_520), "requests", None)


def mentions() -> pa.Table:
    """Return mentions of ten companies, each five minutes of ten days."""
    table: Any = pyarrow.csv.read_csv(SHARED / "rate_series.csv.gz")
    table = table.filter(pc.starts_with(table["series"], "tweets_"))
    first = pc.min(table["ts_ms"]).as_py()
    table = table.filter(pc.less(table["ts_ms"], first + 10 * DAY_MS)).sort_by("ts_ms")
    return _records(table, "value", table["series"])


def _records(table: pa.Table, value: str, series: Any) -> pa.Table:
    at = table["ts_ms"].cast(pa.timestamp("ms")).cast(pa.timestamp("ms", tz="UTC"))
    names = pa.nulls(len(table), pa.string()) if series is None else series
    columns: dict[str, Any] = {"at": at, "series": names, "value": table[value].cast(pa.int64())}
    return pa.table(columns)


def expected(records: pa.Table, text: QueryText, over: QueryText | None = None) -> list[Row]:
    """Return start, key and values of each window; `over`: the query whose results are read."""
    step, moment = round(text.window_s * 1000), 'epoch_ms("at")'
    if over is not None:
        # The time of a result is the end of its window.
        first = round(over.window_s * 1000)
        moment = f"({moment} // {first} * {first} + {first})"
    with duckdb.connect() as database:
        database.register("records", records)
        found = database.execute(
            f"SELECT {moment} // {step} * {step}, series, count(*), sum(value), max(value)"
            " FROM records GROUP BY ALL"
        ).fetchall()
    rows = [(start, series, n, int(total), top) for start, series, n, total, top in found]
    return sorted(rows, key=str)


def plain(row: dict[str, Any]) -> Row:
    start = row["window_start"]
    moment = start if isinstance(start, datetime) else datetime.fromisoformat(start)
    ms = round(moment.astimezone(UTC).timestamp() * 1000)
    return ms, row.get("series"), int(row["n"]), int(row["total"]), int(row["top"])


def in_table(url: str) -> list[dict[str, Any]]:
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        return connection.execute("SELECT * FROM mentions").fetchall()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis that is killed: what it has acknowledged is there again."""
    folder = tmp_path / "redis"
    folder.mkdir()
    with RedisServer(folder, fsync="always") as server:
        yield server


@pytest.fixture
def redis_server(server: RedisServer) -> str:
    return server.url


@dataclass
class World:
    """What is killed: Redis, the driver, the process of sinks; `outages`: of destinations."""

    server: RedisServer
    driver: Driver
    environment: dict[str, str]
    outages: list[Callable[[], Any]]
    draw: random.Random
    sources: dict[str, pa.Table]
    # Of the newest records after all others.
    days: int = 30
    _sinks: ExitStack = field(default_factory=ExitStack)

    def kill(self, part: str) -> None:
        """Kill a part at a moment of the next second, and start it again."""
        time.sleep(self.draw.random())
        if part == "driver":
            self.driver.kill()
            self.driver.start()
        elif part == "sinks":
            self.start_sinks()
        elif part == "redis":
            self.server.kill()
            time.sleep(self.draw.random())
            self.server.start()
        else:
            with self.draw.choice(self.outages)():
                time.sleep(self.draw.random())

    def start_sinks(self) -> None:
        """Start the process of sinks, after the end of the one before with -9."""
        self.end()
        self._sinks.enter_context(sinks_running(self.environment))

    def end(self) -> None:
        self._sinks.close()

    def step(self) -> None:
        """Start a driver that has ended, and update what is final."""
        process = self.driver.process
        if process is not None and process.poll() is not None:
            self.driver.start()
        with suppress(redis.ConnectionError):
            update_finality(timezone.now())

    def are_final(self, windows: int) -> bool:
        """Return whether so many windows are final; else let the time of the streams go on."""
        self.step()
        with results_cursor() as cursor:
            cursor.execute(FINAL)
            if cursor.fetchone()[0] >= windows:
                return True
        self.days += 1
        self.append({name: _end(table, self.days) for name, table in self.sources.items()})
        return False

    def are_written(self) -> bool:
        """Return whether all sinks have written what is final."""
        self.step()
        statuses = statuses_of(Sink.objects.all())
        return not any(status.sink.error or status.waiting for status in statuses)

    def append(self, records: dict[str, Any]) -> None:
        ids = dict(Stream.objects.values_list("name", "pk"))
        with Producer(self.server.url, "sf") as producer:
            producer.append({ids[name]: rows for name, rows in records.items()})


@pytest.mark.parametrize("seed", range(3 if NIGHTLY else 1))
def test_every_destination_has_the_results_of_a_network_of_queries(
    redis_url: str, server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    (tmp_path / "signs").write_text("a key of this test")
    monkeypatch.setenv("WEIR_SINK_SECRET_SIGNS_FILE", str(tmp_path / "signs"))
    for name in ("lake", "driver"):
        (tmp_path / name).mkdir()
    write_data_directory(tmp_path / "postgres", lambda _: None)
    sources = {"requests": requests(), "mentions": mentions()}
    results = {"load": expected(sources["requests"], LOAD),
               "mentions": expected(sources["mentions"], MENTIONS),
               "days": expected(sources["mentions"], DAYS, MENTIONS)}  # fmt: skip
    driver = Driver(redis_url, tmp_path / "driver", "sf",
                    {"WEIR_RESULTS_URL": database_url("results")}, nodes=2)  # fmt: skip
    with (
        postgres_with_outages(tmp_path / "postgres") as (url, postgres_outage),
        broker_with_outages() as (broker, broker_outage),
        receiving() as receiver,
    ):
        create_topic(broker, "days", 3)
        host = psycopg.conninfo.conninfo_to_dict(url)["host"]
        words = f"{tmp_path.as_uri()} unix://{host} http://127.0.0.0/8:1-65535"
        list_destinations(monkeypatch, words)
        places = places_of(tmp_path / "lake", url, broker, receiver)
        _declare(places)
        environment = environment_of(redis_url, tmp_path, words)
        outages = [postgres_outage, broker_outage]
        world = World(server, driver, environment, outages, random.Random(seed), sources)
        _run(world, sum(map(len, results.values())))
        for query, place in places:
            rows = [row for row in map(plain, place.rows()) if row[-1] >= 0]
            # HTTP is at least once, and the broker shows what was aborted.
            rows = [*{*rows}] if place.kind in {"http", "kafka"} else rows
            if place.kind != "stream":
                assert sorted(rows, key=str) == results[query], place.kind


def places_of(lake: Path, url: str, broker: str, receiver: Receiver) -> list[tuple[str, Place]]:
    """Return the destinations of the results of queries by name."""
    parts: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
    table = {"host": parts["host"], "user": parts["user"], "database": parts["dbname"],
             "tls": "disable", "table": "mentions"}  # fmt: skip

    def of_topic() -> list[dict[str, Any]]:
        return [json.loads(message.value()) for message in messages_in(broker, "days")]

    def of_http() -> list[dict[str, Any]]:
        bodies = [receiver.came.get()[1] for _ in range(receiver.came.qsize())]
        return [row for body in bodies for row in json.loads(body)["rows"]]

    http = {"url": receiver.url, "secret": "signs", "batch": 50}
    return [
        ("load", FILES["parquet"](lake / "parquet")), ("load", FILES["delta"](lake / "delta")),
        ("mentions", Place("postgres", table, partial(in_table, url))),
        ("mentions", Place("http", http, of_http)),
        ("mentions", Place("stream", {"stream": "hours"}, list)),
        ("days", Place("kafka", {"servers": broker, "topic": "days"}, of_topic)),
        ("days", FILES["iceberg"](lake / "iceberg")),
    ]  # fmt: skip


def _declare(places: list[tuple[str, Place]]) -> None:
    by = actor("operator")
    cluster = small_cluster(by, stream_count=0, nodes=2)
    specs = [StreamSpec(name, schema=SCHEMA) for name in ("requests", "mentions")]
    streams.register(by, cluster, specs)
    admin = actor("admin")
    for name, stream, text in (
        ("load", "requests", LOAD), ("mentions", "mentions", MENTIONS), ("days", "hours", DAYS),
    ):  # fmt: skip
        query = queries.submit(by, cluster, QuerySpec(name, (stream,), text))
        for owner, place in places:
            if owner == name:
                spec = SinkSpec(place.kind, place.kind, place.settings, start="oldest")
                service.add(admin, query, spec)
    placement.place_pending(cluster.pk)


def _run(world: World, windows: int) -> None:
    """Append the records in parts, with a kill after each; wait until all windows are written."""
    parts = ("driver", "sinks", "redis", "destination")
    kills = [*parts, *(world.draw.choice(parts) for _ in range(CHUNKS - len(parts)))]
    world.draw.shuffle(kills)
    world.driver.start()
    world.start_sinks()
    try:
        for number, part in enumerate(kills):
            world.append({name: _part(table, number) for name, table in world.sources.items()})
            world.step()
            world.kill(part)
        until(partial(world.are_final, windows))
        until(world.are_written)
    finally:
        world.end()
        world.driver.kill()


def _part(table: pa.Table, number: int) -> Any:
    size = -(-len(table) // CHUNKS)
    return table.slice(number * size, size).combine_chunks().to_batches()[0]


def _end(table: pa.Table, days: int) -> list[dict[str, Any]]:
    last = pc.max(table["at"]).as_py().timestamp() + days * 86_400
    return [{"at": datetime.fromtimestamp(last, UTC), "series": END, "value": -1}]
