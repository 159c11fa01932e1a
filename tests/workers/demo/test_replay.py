import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import httpx
import pytest

from tests.support.redis_server import free_port
from workers.demo.keeper import QueryKeeper, RequestRejected
from workers.demo.replay import TokenFile, keep_queries, persistently


class Clockless(Event):
    """An event whose waits take no time and are written down."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout)
        return self.is_set()


def test_asking_goes_on_with_growing_pauses_until_there_is_an_answer() -> None:
    answers = [httpx.ConnectError("away")] * 8 + [RequestRejected(422, "not yet")]

    def ask() -> str:
        if answers:
            raise answers.pop(0)
        return "here"

    stop = Clockless()
    assert persistently(ask, stop) == "here"
    assert stop.waits == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


def test_asking_ends_when_told() -> None:
    stop = Clockless()

    def ask() -> str:
        stop.set()
        raise httpx.ConnectError("away")

    assert persistently(ask, stop) is None


def test_a_fault_of_our_own_ends_the_process_instead_of_half_of_it() -> None:
    """Reports would flow on while no query arrives or departs, and nobody would notice."""
    stop = Clockless()
    with pytest.raises(AttributeError):
        keep_queries(QueryKeeper(None, ("trip-",)), list, stop)  # type: ignore[arg-type]
    assert stop.is_set()


def test_the_token_is_read_for_each_request(token_file: Path) -> None:
    """The file may be written after the replay started, and renewed while it runs."""
    seen: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("Authorization"))
        return httpx.Response(200)

    with httpx.Client(auth=TokenFile(token_file), transport=httpx.MockTransport(answer)) as http:
        http.get("http://weir.test/")
        token_file.write_text("weir_abc\n")
        http.get("http://weir.test/")
    assert seen == [None, "Bearer weir_abc"]


def test_sigterm_ends_the_process_cleanly_while_weir_is_away(
    demo_redis_url: str, token_file: Path
) -> None:
    """The runner stops all processes at once; the replay must not hang on a web that is gone."""
    command = [
        sys.executable, "-m", "workers.demo.replay", "--token-file", str(token_file),
        "--url", f"http://127.0.0.1:{free_port()}",
    ]  # fmt: skip
    environment = {**os.environ, "REDIS_URL": demo_redis_url}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        assert "asking again" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
