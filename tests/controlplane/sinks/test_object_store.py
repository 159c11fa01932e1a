"""Files in an object store: Parquet, Delta and Iceberg with an endpoint, credentials and limits."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from controlplane.access.roles import Actor
from controlplane.errors import Invalid
from controlplane.models import Cluster, Sink
from controlplane.sinks import service
from controlplane.sinks.destination import DestinationAway
from controlplane.sinks.kinds import delta
from controlplane.sinks.kinds.settings import DeltaSettings
from controlplane.sinks.process import SinkFollower
from controlplane.sinks.service import SinkSpec
from tests.support.cluster import actor
from tests.support.destinations import list_destinations
from tests.support.lake import MINUTES_OF_DAY, Place
from tests.support.nightly import by_night
from tests.support.object_store import KEYS, REGION, ObjectStore, running_store
from tests.support.sinks import Meters, run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]
FILES = ("parquet", "delta", "iceberg")


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with running_store() as running:
        yield running


@pytest.fixture
def meters(operator: Actor, sf: Cluster) -> Meters:
    return Meters.submitted(operator, sf, seed=3)


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_SINK_SECRET_LAKE", ":".join(KEYS))


def settings_of(kind: str, endpoint: str, folder: Path) -> dict[str, Any]:
    url = f"s3://lake/{kind}"
    common = {"endpoint": endpoint, "region": REGION, "secret": "lake", "every_s": 1}
    if kind != "iceberg":
        return {"url": url, **common}
    uri = f"sqlite:///{folder}/catalog.db"
    return {"type": "sql", "uri": uri, "warehouse": url, "table": "shop.readings", **common}


def place_in(kind: str, store: ObjectStore, folder: Path) -> Place:
    settings = settings_of(kind, store.url, folder)

    def rows() -> list[dict[str, Any]]:
        if kind == "parquet":
            files = ds.dataset("lake/parquet", filesystem=store.files, partitioning="hive")
            return list(files.to_table().to_pylist())
        if kind == "delta":
            table = DeltaTable(settings["url"], storage_options=store.options)
            return list(table.to_pyarrow_table().to_pylist())
        catalog = load_catalog("weir", type="sql", uri=settings["uri"], **store.properties)
        return list(catalog.load_table("shop.readings").scan().to_arrow().to_pylist())

    return Place(kind, settings, rows)


def added(meters: Meters, kind: str, settings: dict[str, Any]) -> Sink:
    spec = SinkSpec("out", kind, settings, mode="every_change", start="oldest")
    return service.add(actor("admin"), meters.query, spec)


class Killed(BaseException):
    """The end of a process."""


def _die(*_: Any) -> None:
    raise Killed


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize("kind", FILES)
def test_an_object_store_has_the_results_once(
    store: ObjectStore, meters: Meters, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a process that ends after a write, and a day whose files are joined."""
    list_destinations(monkeypatch, f"{store.url} s3://lake {tmp_path.as_uri()}")
    place = place_in(kind, store, tmp_path)
    sink = added(meters, kind, place.settings)
    follower = SinkFollower(sink.pk)
    for step in range(4):
        meters.next(10)
        if step == 2:
            with monkeypatch.context() as patch:
                patch.setattr(SinkFollower, "_count", _die)
                with pytest.raises(Killed):
                    run(follower)
            follower = SinkFollower(sink.pk)
        run(follower)
    meters.batch += MINUTES_OF_DAY
    meters.next(10)
    run(follower)
    meters.end()
    run(follower)
    sink.refresh_from_db()
    assert (sink.error, sink.failures) == ("", 0)
    assert place.newest() == meters.expected()
    versions = [(row["seq"], row["is_final"]) for row in place.rows()]
    assert len(versions) == len(set(versions))


@pytest.mark.parametrize("kind", ["delta", *by_night("losses", [("parquet",), ("iceberg",)])])
def test_a_store_that_is_away_or_refuses_is_named(
    meters: Meters, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def error_of(sink: Sink) -> str:
        run(SinkFollower(sink.pk))
        sink.refresh_from_db()
        Sink.objects.update(retry_at=None)
        return sink.error

    with running_store() as store:
        list_destinations(monkeypatch, f"{store.url} s3://lake {tmp_path.as_uri()}")
        settings = settings_of(kind, store.url, tmp_path)
        meters.next(10)
        meters.end()
        sink = added(meters, kind, settings | {"secret": "other"})
        assert "WEIR_SINK_SECRET_OTHER" in error_of(sink)
        monkeypatch.setenv("WEIR_SINK_SECRET_OTHER", "no-colon")
        assert "The secret other is not access-key:secret-key" in error_of(sink)
        monkeypatch.setenv("WEIR_SINK_SECRET_OTHER", ":".join(KEYS))
        store.require_logins()
        refused = error_of(sink)
        assert "ACCESS_DENIED" in refused or "InvalidAccessKeyId" in refused
        assert KEYS[1] not in refused
        assert "\n" not in refused
    assert "onnect" in error_of(sink)


def test_a_store_without_a_secret_is_asked_as_the_machine(
    meters: Meters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose identity here are variables that the store does not accept."""
    with running_store() as own:
        list_destinations(monkeypatch, f"{own.url} s3://lake")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "x")
        own.require_logins()
        sink = added(meters, "parquet", settings_of("parquet", own.url, tmp_path) | {"secret": ""})
        run(SinkFollower(sink.pk))
    sink.refresh_from_db()
    assert "the sink names no secret, so it has the identity of the machine" in sink.error


@pytest.mark.parametrize("kind", FILES)
def test_an_endpoint_must_be_in_the_list(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a public one: the list has the bucket, which is another one there."""
    list_destinations(monkeypatch, f"s3://lake {tmp_path.as_uri()}")
    for endpoint in (
        "https://s3.example.org",
        "http://127.0.0.1:99999",
        "ftp://host",
        "https://a/b",
    ):
        with pytest.raises(Invalid) as refusal:
            service.check(SinkSpec("out", kind, settings_of(kind, endpoint, tmp_path)))
        assert list(refusal.value.fields) == ["settings.endpoint"]


class _Refusing(BaseHTTPRequestHandler):
    """Answers as a store of this process."""

    def do_GET(self) -> None:
        self.send_response(403)
        self.end_headers()
        self.wfile.write(b"of this process")

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.mark.usefixtures("secret")
def test_other_threads_run_while_a_store_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sinks are threads of one process: a store that is slow must hold back none but its own."""
    monkeypatch.setattr(delta, "SinkFolder", lambda _: None)
    monkeypatch.setattr(delta, "REQUEST_S", 1)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        list_destinations(monkeypatch, f"{endpoint} s3://lake")
        given = settings_of("delta", endpoint, Path())
        context: Any = None
        with pytest.raises(DestinationAway, match="of this process"):
            delta.open_destination(DeltaSettings.model_validate(given), context)
        server.shutdown()
