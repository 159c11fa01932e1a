"""Ready means that the process itself says so, in this run."""

import http.server
import json
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import redis

from controlplane.processes.runtime import health
from controlplane.processes.runtime.beats import beat, record_clusters
from controlplane.processes.runtime.children import Place
from controlplane.processes.runtime.errors import Stopped
from controlplane.wire.keys import telemetry_key
from tests.support.redis_server import free_port, running_redis


@pytest.fixture
def client(tmp_path: Path) -> Iterator["redis.Redis"]:
    """Yield a client of a private Redis."""
    with running_redis(tmp_path) as url, redis.Redis.from_url(url) as client:
        yield client


class Answer(http.server.BaseHTTPRequestHandler):
    """Answers with the status that its server holds."""

    def do_GET(self) -> None:
        self.send_response(self.server.status)  # type: ignore[attr-defined]
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


@pytest.mark.parametrize(("status", "missing"), [(200, None), (400, None), (500, "web")])
def test_a_web_that_answers_is_ready(
    monkeypatch: pytest.MonkeyPatch, status: int, missing: str | None
) -> None:
    """A refused Host header is an answer; an error inside is not. A proxy is not asked."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        server.status = status  # type: ignore[attr-defined]
        threading.Thread(target=server.handle_request, daemon=True).start()
        place = Place(Path(), "127.0.0.1", server.server_port, "", Path())
        assert health.probe_web(place) == missing


def test_a_web_that_does_not_listen_yet_is_waited_for() -> None:
    """Django takes seconds to import."""
    assert health.probe_web(Place(Path(), "127.0.0.1", free_port(), "", Path())) == "web"


def test_a_beat_of_an_earlier_run_does_not_count(client: "redis.Redis") -> None:
    """Redis keeps its data: the last run's beats are there for a minute."""
    beat(client, "relay")
    now = time.time_ns() // 1_000_000
    assert health.probe_beat(client, "relay", since_ms=now - 5000) is None
    assert health.probe_beat(client, "relay", since_ms=now + 5000) == "relay"
    assert health.probe_beat(client, "beat", since_ms=0) == "beat"


def test_spark_is_ready_when_it_told_of_a_batch_in_this_run(client: "redis.Redis") -> None:
    """A process, or telemetry of yesterday, is not live data."""
    probe = partial(health.probe_spark, client, since_ms=1000)
    assert probe() == "agent"
    beat(client, "agent")
    record_clusters(client, {"sf": "starting", "ny": "stopped"}, ["sf", "ny"])
    assert probe() == "Spark of sf (starting)"
    record_clusters(client, {"sf": "running", "ny": "stopped"}, ["sf", "ny"])
    client.xadd(telemetry_key("sf"), {"t": json.dumps({"batch": 1, "emitted_ms": 999})})
    assert probe() == "Spark of sf (running)"
    record_clusters(client, {"sf": "idle"}, ["sf", "ny"])
    assert probe() is None
    record_clusters(client, {"sf": "running"}, ["sf", "ny"])
    client.xadd(telemetry_key("sf"), {"t": json.dumps({"batch": 2, "emitted_ms": 1001})})
    assert probe() is None


def test_the_wait_says_what_is_missing_and_only_changes() -> None:
    """A line every quarter of a second would hide the one that matters."""
    answers = {"web": iter(["web", "web", None]), "Spark": iter(["Spark", "Spark", "Spark", None])}
    said: list[str] = []
    probes: dict[str, health.Probe] = {
        name: (lambda name=name: next(answers[name]))  # type: ignore[misc]
        for name in answers
    }
    health.wait_until_ready(probes, said.append, lambda _: None)
    assert said == ["waiting for web, Spark", "waiting for Spark"]


def test_a_lost_redis_is_said_not_raised() -> None:
    """Its own child record tells why it ended."""
    client = redis.Redis.from_url(f"redis://127.0.0.1:{free_port()}/0")
    said: list[str] = []

    def pause(_: float) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        health.wait_until_ready(
            {"relay": partial(health.probe_beat, client, "relay", 0)}, said.append, pause
        )
    assert said == ["waiting for relay (Redis does not answer)"]


def test_no_worker_answers_the_ping_of_an_empty_broker(client: "redis.Redis") -> None:
    """The ping goes through the broker with the prefix that the worker uses."""
    port = client.connection_pool.connection_kwargs["port"]
    place = Place(Path(), "127.0.0.1", 1, f"redis://127.0.0.1:{port}/0", Path())
    assert health.probe_worker(place, {"global_keyprefix": "weir:celery:"}) == "worker"
