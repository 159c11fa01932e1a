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
from tests.support.lossy_proxy import losing_answers
from tests.support.nightly import NIGHTLY
from tests.support.postgres import postgres_with_outages, write_data_directory
from tests.support.sink_process import environment_of, sinks_running, until
from tests.support.sinks import Meters, Result, ordered
from tests.support.stream_results import records_of
from tests.support.topic_results import results_in
from tests.support.topics import broker_with_outages, create_topic

pytestmark = pytest.mark.django_db(transaction=True)
NAMES = ("window_start", "station", "open", "stream", "n", "total", "top")


@pytest.fixture
def operator(db: None, redis_url: str) -> Actor:
    return actor("operator")


@pytest.mark.nightly("losses", by_day=True)
@pytest.mark.parametrize("seed", range(6 if NIGHTLY else 1))
def test_nothing_is_missing_and_nothing_is_doubled(
    operator: Actor, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Answers of Redis to the process of sinks are lost, too."""
    data = tmp_path / "postgres"
    write_data_directory(data, lambda _: None)
    lake = tmp_path / "lake"
    redis_port = int(redis_url.rpartition(":")[2].partition("/")[0])
    with (
        postgres_with_outages(data) as (url, outage),
        broker_with_outages() as (broker, broker_outage),
        losing_answers(redis_port, 0.1) as lossy_port,
    ):
        create_topic(broker, "readings", 3)
        parts = psycopg.conninfo.conninfo_to_dict(url)
        words = f"{tmp_path.as_uri()} unix://{parts['host']}"
        list_destinations(monkeypatch, words)
        table = {"host": parts["host"], "user": parts["user"], "database": parts["dbname"],
                 "tls": "disable", "table": "readings"}  # fmt: skip
        meters = Meters.submitted(operator, small_cluster(operator), seed=11 + seed)
        admin = actor("admin")
        for spec in (
            SinkSpec("table", "postgres", table, mode="every_change", start="oldest"),
            SinkSpec("files", "parquet", {"url": lake.as_uri(), "every_s": 1}, start="oldest"),
            SinkSpec("topic", "kafka", {"servers": broker, "topic": "readings"}, start="oldest"),
            SinkSpec("stream", "stream", {"stream": "results"}, start="oldest"),
        ):
            service.add(admin, meters.query, spec)
        lossy_url = redis_url.replace(str(redis_port), str(lossy_port))
        environment = environment_of(lossy_url, tmp_path, words)

        draw = random.Random(3 + seed)
        for _ in range(3):
            with sinks_running(environment):
                before = Sink.objects.get(name="table").written
                for _ in range(2):
                    meters.next()
                for away in (outage, broker_outage):
                    if draw.random() < 0.5:
                        with away():
                            meters.next()
                wanted = before + draw.randint(1, 40)
                until(partial(_has_written, wanted))
        meters.end()
        with sinks_running(environment):
            expected: list[Result] = meters.expected()
            until(lambda: len(_in_files(lake)) >= len(expected) and _are_done())
            assert ordered(_in_table(url)) == expected
            assert ordered(_in_files(lake)) == expected
            assert ordered(map(_named, records_of("sf", "results"))) == expected
            # The broker shows what was aborted.
            assert ordered(set(map(_named, results_in(broker, "readings")))) == expected


def _has_written(count: int) -> bool:
    return Sink.objects.get(name="table").written >= count


def _in_table(url: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(f"SELECT {', '.join(NAMES)} FROM readings").fetchall()


def _in_files(lake: Path) -> list[tuple[Any, ...]]:
    files = ds.dataset(lake, partitioning="hive").to_table() if lake.exists() else None
    return [*map(_named, files.to_pylist() if files is not None and files.num_columns else [])]


def _named(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in NAMES)


def _are_done() -> bool:
    """Return whether the sinks have written what is final."""
    statuses = statuses_of(Sink.objects.all())
    return not any(status.sink.error or status.waiting for status in statuses)
