"""The web process answers in threads that stay, and so do their connections to the database."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.db.backends.signals import connection_created
from django.http import HttpResponse, StreamingHttpResponse

from controlplane.processes.runtime import request_bounds
from controlplane.processes.serving import pooled_handler
from controlplane.processes.serving.pooled_handler import PooledHandler

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def opened() -> Iterator[list[Any]]:
    """The connections that are opened during the test."""
    found: list[Any] = []

    def note(connection: Any, **_: Any) -> None:
        found.append(connection)

    connection_created.connect(note)
    yield found
    connection_created.disconnect(note)


async def ask(handler: PooledHandler, path: str) -> tuple[int, dict[bytes, bytes]]:
    """Ask with a token that is not known: the database is asked for it."""
    peer = await asked(handler, path)
    begin = await peer.receive_output(60)
    await peer.receive_output(60)
    return begin["status"], dict(begin["headers"])


async def asked(handler: PooledHandler, path: str) -> Any:
    scope = {
        "type": "http", "method": "GET", "path": path, "query_string": b"", "http_version": "1.1",
        "headers": [
            (b"host", b"localhost"), (b"authorization", b"Bearer weir_x"),
            (b"cookie", b"sessionid=abcdefghijklmnopqrstuvwxyz012345"),
        ],
    }  # fmt: skip
    peer: Any = ApplicationCommunicator(handler, scope)  # type: ignore[no-untyped-call]
    await peer.send_input({"type": "http.request", "body": b""})
    return peer


async def test_connections_stay_open_from_one_request_to_the_next(opened: list[Any]) -> None:
    """One after the other, or more at once than there are threads."""
    handler = PooledHandler(2)
    for _ in range(4):
        assert (await ask(handler, "/api/v1/me"))[0] == 401
    assert len(opened) <= 2
    await asyncio.gather(*(ask(handler, "/api/v1/me") for _ in range(8)))
    assert len(opened) <= 2


async def test_a_probe_reads_no_session(opened: list[Any]) -> None:
    """It answers while the database is away."""
    handler = PooledHandler(2, {("GET", "/healthz"): request_bounds.HEALTH})
    assert (await ask(handler, "/healthz"))[0] == 200
    assert opened == []


async def test_a_file_is_sent_in_parts_of_which_each_has_a_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No thread waits for the client."""
    generated: list[int] = []

    def lines() -> Iterator[str]:
        for number in range(4):
            generated.append(number)
            yield "x" * pooled_handler._PART

    def answer(handler: PooledHandler, request: Any) -> Any:
        return StreamingHttpResponse(lines())

    monkeypatch.setattr(PooledHandler, "get_response", answer)
    peer = await asked(PooledHandler(1), "/file")
    assert (await peer.receive_output(60))["status"] == 200
    sizes = [len((await peer.receive_output(60))["body"]) for _ in range(4)]
    assert sizes == [pooled_handler._PART] * 4
    last = await peer.receive_output(60)
    while last.get("more_body"):
        last = await peer.receive_output(60)
    assert not last.get("body")
    assert generated == list(range(4))


async def test_probes_and_logins_have_threads_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever holds all others."""
    opened_ = threading.Event()

    def answer(handler: PooledHandler, request: Any) -> Any:
        if request.path == "/held":
            opened_.wait(60)
        return HttpResponse("ok")

    monkeypatch.setattr(PooledHandler, "get_response", answer)
    lanes = {("GET", "/healthz"): request_bounds.HEALTH, ("GET", "/in"): request_bounds.LOGINS}
    handler = PooledHandler(1, lanes)
    held = [await asked(handler, "/held") for _ in range(3)]
    for path in ("/healthz", "/in"):
        assert (await ask(handler, path))[0] == 200
    opened_.set()
    assert [(await peer.receive_output(60))["status"] for peer in held] == [200] * 3


async def test_requests_of_one_thread_are_told_apart() -> None:
    """Each has an id of its own, though the thread is the same."""
    handler = PooledHandler(1)
    answers = await asyncio.gather(*(ask(handler, "/healthz") for _ in range(5)))
    assert len({headers[b"X-Request-ID"] for _, headers in answers}) == 5
