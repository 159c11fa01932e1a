"""The process of sinks is killed, and a destination is stopped, at seeded moments."""

import random
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.dataset as ds
import pytest

from controlplane.access.roles import Actor
from controlplane.models import Sink
from controlplane.sinks import service
from controlplane.sinks.service import SinkSpec
from controlplane.sinks.status import statuses_of
from tests.support.cluster import actor, small_cluster
from tests.support.destinations import list_destinations
from tests.support.postgres import postgres_with_outages, write_data_directory
from tests.support.sink_process import environment_of, sinks_running, until
from tests.support.sinks import Meters, Result, ordered

pytestmark = pytest.mark.django_db(transaction=True)
NAMES = ("window_start", "station", "open", "stream", "n", "total", "top")


@pytest.fixture
def operator(db: None, redis_url: str) -> Actor:
    return actor("operator")


def test_nothing_is_missing_and_nothing_is_doubled(
    operator: Actor, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    data = tmp_path / "postgres"
    write_data_directory(data, lambda _: None)
    lake = tmp_path / "lake"
    with postgres_with_outages(data) as (url, outage):
        parts = psycopg.conninfo.conninfo_to_dict(url)
        words = f"{tmp_path.as_uri()} unix://{parts['host']}"
        list_destinations(monkeypatch, words)
        table = {"host": parts["host"], "user": parts["user"], "database": parts["dbname"],
                 "tls": "disable", "table": "readings"}  # fmt: skip
        meters = Meters.submitted(operator, small_cluster(operator), seed=11)
        admin = actor("admin")
        for spec in (
            SinkSpec("table", "postgres", table, mode="every_change", start="oldest"),
            SinkSpec("files", "parquet", {"url": lake.as_uri(), "every_s": 1}, start="oldest"),
        ):
            service.add(admin, meters.query, spec)
        environment = environment_of(redis_url, tmp_path, words)

        def in_table() -> list[tuple[Any, ...]]:
            with psycopg.connect(url, autocommit=True) as connection:
                try:
                    columns = ", ".join(NAMES)
                    found = connection.execute(f"SELECT {columns} FROM readings").fetchall()
                except psycopg.errors.UndefinedTable:
                    found = []
            return found

        def in_files() -> list[tuple[Any, ...]]:
            files = ds.dataset(lake, partitioning="hive").to_table() if lake.exists() else None
            rows = files.to_pylist() if files is not None and files.num_columns else []
            return [tuple(row[name] for name in NAMES) for row in rows]

        draw = random.Random(3)
        for _ in range(3):
            with sinks_running(environment):
                before = Sink.objects.get(name="table").written
                for _ in range(2):
                    meters.next()
                if draw.random() < 0.5:
                    with outage():
                        meters.next()
                wanted = before + draw.randint(1, 40)
                until(partial(_has_written, wanted))
        meters.end()
        with sinks_running(environment):
            expected: list[Result] = meters.expected()
            until(lambda: len(in_files()) >= len(expected) and _is_done())
            assert ordered(in_table()) == expected
            assert ordered(in_files()) == expected


def _has_written(count: int) -> bool:
    return Sink.objects.get(name="table").written >= count


def _is_done() -> bool:
    """Return whether the sink of the table has written what is final."""
    sink = Sink.objects.get(name="table")
    return not sink.error and statuses_of([sink])[0].waiting == 0
