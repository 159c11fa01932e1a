"""Contents of every destination equal DuckDB's over the input, wherever a sink is interrupted."""

import json
import random
import uuid
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Sink
from controlplane.results.database import results_cursor
from controlplane.sinks import service
from controlplane.sinks.process import SinkFollower
from controlplane.sinks.service import SinkSpec
from controlplane.wire.topics.source import TopicSource
from tests.support.cluster import actor
from tests.support.destinations import RECEIVERS, list_destinations
from tests.support.iceberg_rest import CLIENT, SECRET, running_rest_catalog
from tests.support.lake import FILES, MINUTES_OF_DAY, NAMES, Place, iceberg_of
from tests.support.nightly import by_night
from tests.support.postgres import running_postgres
from tests.support.receiver import receiving
from tests.support.registry import running_registry
from tests.support.sinks import Meters, run
from tests.support.stream_results import records_of
from tests.support.topic_results import results_in, rows_by
from tests.support.topics import create_topic, running_broker

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]
# Destinations other than PostgreSQL.
OTHERS = (*FILES, "rest", "http", "kafka", "avro", "protobuf", "stream")


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, Any]]:
    """Settings of a PostgreSQL that only this module uses."""
    with running_postgres() as url:
        parts = psycopg.conninfo.conninfo_to_dict(url)
        yield {"host": parts["host"], "port": int(parts.get("port") or 5432),
               "user": parts["user"], "database": parts["dbname"], "tls": "disable"}  # fmt: skip


def connection(server: dict[str, Any]) -> "psycopg.Connection[Any]":
    return psycopg.connect(host=server["host"], port=server["port"], user=server["user"],
                           dbname=server["database"], autocommit=True)  # fmt: skip


def postgres(server: dict[str, Any], table: str) -> Place:
    def rows() -> list[dict[str, Any]]:
        with connection(server) as opened, opened.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table}")
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    with connection(server) as opened:
        opened.execute(f"DROP TABLE IF EXISTS {table}")
    return Place("postgres", {**server, "table": table}, rows)


@pytest.fixture
def http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    (tmp_path / "signs").write_text("a key of this test")
    monkeypatch.setenv("WEIR_SINK_SECRET_SIGNS_FILE", str(tmp_path / "signs"))
    came: list[dict[str, Any]] = []
    with receiving() as receiver:

        def rows() -> list[dict[str, Any]]:
            while not receiver.came.empty():
                for row in json.loads(receiver.came.get()[1])["rows"]:
                    start = datetime.fromisoformat(row["window_start"])
                    total = None if row["total"] is None else Decimal(row["total"])
                    came.append({**row, "window_start": start, "total": total})
            return came

        yield Place("http", {"url": receiver.url, "secret": "signs", "batch": 7}, rows)


@pytest.fixture
def rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A table of Iceberg in a REST catalog, which gives tokens to who has the secret."""
    monkeypatch.setenv("WEIR_SINK_SECRET_CATALOG", f"{CLIENT}:{SECRET}")
    with running_rest_catalog(tmp_path) as (url, catalog):
        list_destinations(monkeypatch, f"{url} {tmp_path.as_uri()}")
        settings = {"type": "rest", "uri": url, "catalog_secret": "catalog"}
        yield iceberg_of(catalog, settings)


@pytest.fixture(scope="module")
def tansu() -> Iterator[str]:
    """A broker that only this module uses."""
    with running_broker() as address:
        yield address


def kafka(address: str, topic: str) -> Place:
    settings = {"servers": address, "topic": topic}
    return Place("kafka", settings, lambda: results_in(address, topic))


@pytest.fixture
def with_registry(
    request: pytest.FixtureRequest, tansu: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    """A topic of messages with registered schemas, which a stream of Weir reads."""
    (tmp_path / "login").write_text("weir:a password")
    for owner in ("SINK", "TOPIC"):
        monkeypatch.setenv(f"WEIR_{owner}_SECRET_SHOP_REGISTRY_FILE", str(tmp_path / "login"))
    kind = request.node.callspec.params["place"]
    with running_registry("weir:a password") as registry:
        place = kafka(tansu, new_topic(tansu))
        topic, secrets = place.settings["topic"], {"registry": "shop-registry"}
        place.settings |= {"format": kind, "registry": registry.url, "secrets": secrets}
        source = TopicSource(tansu, topic, kind, registry=registry.url, secrets=secrets)
        place.rows = lambda: results_in(tansu, topic, partial(rows_by, source, "meters"))
        yield place
        assert len(registry.schemas(f"{topic}-value")) == 1


def new_topic(address: str) -> str:
    topic = uuid.uuid4().hex
    create_topic(address, topic, 3)
    return topic


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The destination of the parameter."""
    server = request.getfixturevalue("server")
    folders = f"unix://{server['host']} {tmp_path.as_uri()}"
    list_destinations(monkeypatch, f"{RECEIVERS} {folders}")
    if request.param == "postgres":
        return postgres(server, "readings")
    if request.param == "stream":
        return Place("stream", {"stream": "results"}, lambda: records_of("sf", "results"))
    if request.param == "kafka":
        address = request.getfixturevalue("tansu")
        return kafka(address, new_topic(address))
    if request.param in {"avro", "protobuf"}:
        formatted: Place = request.getfixturevalue("with_registry")
        return formatted
    if request.param in FILES:
        return FILES[request.param](tmp_path / "lake")
    found: Place = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def meters(operator: Actor, sf: Cluster) -> Meters:
    return Meters.submitted(operator, sf, seed=42)


def added(meters: Meters, place: Place, **more: Any) -> Sink:
    spec = SinkSpec("out", place.kind, place.settings, start="oldest", **more)
    return service.add(actor("admin"), meters.query, spec)


class Killed(BaseException):
    """The end of a process."""


def finish(follower: SinkFollower, sink: Sink, place: Place) -> None:
    """Write what is left; a REST catalog that answers late on a busy machine is tried once more."""
    run(follower)
    sink.refresh_from_db()
    if sink.failures and place.settings.get("type") == "rest":
        run(follower)
        sink.refresh_from_db()


@pytest.mark.parametrize(
    ("place", "mode"),
    [
        ("postgres", "final_only"),
        ("postgres", "every_change"),
        *((kind, "every_change") for kind in OTHERS),
        *by_night("losses", ((kind, "final_only") for kind in OTHERS)),
    ],
    indirect=["place"],
)
def test_every_destination_has_the_results_once(meters: Meters, place: Place, mode: str) -> None:
    """With processes that end after the write and before they note it, at seeded moments."""
    sink, draw = added(meters, place, mode=mode), random.Random(7)
    follower = SinkFollower(sink.pk)
    for _ in range(8):
        _change_another_query()
        meters.next()
        with pytest.MonkeyPatch.context() as patch:
            if draw.random() < 0.5:
                patch.setattr(SinkFollower, "_count", _die)
            try:
                run(follower)
                _change_another_query()
                run(follower)
            except Killed:
                follower = SinkFollower(sink.pk)
    # The first day is over: its files are joined.
    for _ in range(2):
        meters.batch += MINUTES_OF_DAY
        meters.next()
        run(follower)
        meters.correct()
        run(follower)
    meters.end()
    finish(follower, sink, place)
    assert (sink.error, sink.failures) == ("", 0)
    assert place.newest() == meters.expected()
    rows = place.rows()
    if place.kind in FILES:
        assert place.files("1970-01-01") == 1
    if place.kind != "http":
        # No row twice: of a table by its key, of files by the number of the change.
        versions = [(row["seq"], row["is_final"]) for row in rows]
        assert len(versions) == len(set(versions))
    if mode == "final_only":
        assert {row["is_final"] for row in rows} == {True}


def _change_another_query() -> None:
    """Let the numbers of changes of the cluster grow."""
    with results_cursor() as cursor:
        cursor.execute("UPDATE results_cluster SET seq = seq + 7")


def _die(*_: Any) -> None:
    raise Killed


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_refused_result_is_kept_with_the_reason_and_written_again(
    operator: Actor, meters: Meters, place: Place, server: dict[str, Any]
) -> None:
    columns = {name: name for name in (*NAMES, "seq", "is_final")}
    with connection(server) as opened:
        opened.execute(
            "CREATE TABLE readings (window_start timestamptz, station text, open boolean,"
            " stream text, n bigint, total numeric CHECK (total < 50), top double precision,"
            " seq bigint, is_final boolean,"
            " UNIQUE NULLS NOT DISTINCT (window_start, station, open, stream))"
        )
    place.settings["columns"] = columns
    sink = added(meters, place)
    for _ in range(4):
        meters.next()
    meters.end()
    follower = SinkFollower(sink.pk)
    run(follower)
    large = [row for row in meters.expected() if row[5] is not None and row[5] >= 50]
    assert 0 < len(large) == sink.refused_results.count()
    sink.refresh_from_db()
    counts = sink.written, sink.refused
    assert (*counts, sink.error) == (len(meters.expected()) - len(large), len(large), "")
    assert place.newest() == [row for row in meters.expected() if row not in large]
    assert "check" in sink.refused_results.all()[0].reason
    with connection(server) as opened:
        opened.execute("ALTER TABLE readings DROP CONSTRAINT readings_total_check")
    assert service.replay_refused(operator, sink) == len(large)
    run(follower)
    assert not sink.refused_results.exists()
    assert place.newest() == meters.expected()


@pytest.mark.parametrize("place", ["rest"], indirect=True)
def test_a_sink_waits_for_a_catalog_that_refuses_its_secret(
    operator: Actor, meters: Meters, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_SINK_SECRET_CATALOG", f"{CLIENT}:another")
    sink = added(meters, place)
    meters.next()
    meters.end()
    follower = SinkFollower(sink.pk)
    run(follower)
    sink.refresh_from_db()
    assert sink.failures == 1
    assert "another" not in sink.error
    monkeypatch.setenv("WEIR_SINK_SECRET_CATALOG", f"{CLIENT}:{SECRET}")
    service.retry(operator, sink)
    run(follower)
    assert place.newest() == meters.expected()
