"""The web processes that Weir starts, as they really run."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from controlplane.processes.runtime.children import web_children
from controlplane.processes.runtime.supervisor import Supervisor
from controlplane.processes.runtime.web import open_listener
from tests.controlplane.processes.runtime.waiting import is_gone, wait_for
from tests.support.redis_server import free_port

# The import of pages and API, on a busy machine.
START_S = 90


@pytest.fixture
def web(tmp_path: Path, redis_server: str) -> Iterator[tuple[Supervisor, int]]:
    """Two web processes under a supervisor, and their port."""
    port = free_port()
    environment = {
        **os.environ, "WEIR_DATA": str(tmp_path), "REDIS_URL": redis_server,
        # Whatever the level of these tests, the start is in the log.
        "WEIR_LOG_LEVEL": "INFO",
    }  # fmt: skip
    supervisor = Supervisor(tmp_path, environment, lambda _: None)
    with open_listener("127.0.0.1", port) as listener:
        for spec in web_children(listener.fileno())[:2]:
            supervisor.start(spec)
        yield supervisor, port
    assert supervisor.end_all(hurry=lambda: True)


def starts(supervisor: Supervisor, name: str) -> int:
    """Return how often a child has started to serve."""
    return supervisor.children[name].log.read_text().count("startup complete")


@pytest.mark.nightly("losses")
def test_the_death_of_a_web_process_fails_only_its_own_requests(
    web: tuple[Supervisor, int],
) -> None:
    """The other one accepts what waits at the socket that both share, until it is back."""
    supervisor, port = web
    wait_for(lambda: all(starts(supervisor, name) for name in supervisor.children), START_S)
    served, failed, stop = [], [], threading.Event()

    def load() -> None:
        while not stop.is_set():
            started = time.monotonic()
            try:
                httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=60).raise_for_status()
                served.append(started)
            except httpx.HTTPError:
                failed.append(started)

    loader = threading.Thread(target=load)
    loader.start()
    try:
        wait_for(lambda: bool(served))
        victim = supervisor.children["web-1"].pid
        assert victim is not None
        os.kill(victim, 9)
        killed = time.monotonic()

        def restarted() -> bool:
            supervisor.tick()
            return starts(supervisor, "web-1") == 2

        wait_for(restarted, START_S)
        assert is_gone(victim)
    finally:
        stop.set()
        loader.join()
    assert [started for started in failed if started > killed] == []
    assert len(failed) <= 1
    assert any(started > killed for started in served)
