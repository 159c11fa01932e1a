"""The limits of requests on a real server: uvicorn with an application that reads whole bodies."""

import asyncio
import ipaddress
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from pytest_django import Settings

from controlplane.processes.runtime.request_bounds import RequestLimits
from controlplane.processes.serving import http_protocol
from controlplane.processes.serving.fair_threads import Owner
from controlplane.processes.serving.request_limits import LimitedRequests

LIMITS = RequestLimits(known_bytes=4000, anonymous_bytes=1000, body_s=0.3, held_bytes=12000)
PATIENCE_S = 20


async def _echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


async def _owner(scope: dict[str, Any]) -> Owner:
    is_known = (b"authorization", b"Bearer valid") in scope["headers"]
    return Owner("someone", is_known=is_known)


async def test_a_user_holds_half_of_the_bytes_of_all_bodies() -> None:
    """Until its requests are answered; a further one is refused, one of another user is not."""
    open_ = asyncio.Event()

    async def held(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await receive()
        await open_.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def owner(scope: dict[str, Any]) -> Owner:
        return Owner(scope["path"], is_known=True)

    limited = LimitedRequests(held, LIMITS, owner)

    async def post(user: str) -> int:
        scope = {"type": "http", "method": "POST", "path": user, "headers": []}
        statuses: list[int] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"x" * 4000, "more_body": False}

        async def send(message: Any) -> None:
            statuses.append(message.get("status", 0))

        await limited(scope, receive, send)
        return statuses[0]

    first = asyncio.create_task(post("/api/ada"))
    await asyncio.sleep(0)
    assert await post("/api/ada") == 503
    second = asyncio.create_task(post("/api/bob"))
    await asyncio.sleep(0)
    open_.set()
    assert [await first, await second, await post("/api/ada")] == [200] * 3


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_protocol, "HEAD_S", 0.3)
        config = uvicorn.Config(
            LimitedRequests(_echo, LIMITS, _owner),
            http=http_protocol.LimitedHeadProtocol, lifespan="off", log_level="critical",
        )  # fmt: skip
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(
                target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True
            )
            thread.start()
            yield listener.getsockname()[1]
            server.should_exit = True
            thread.join(PATIENCE_S)


def _answer(port: int, sent: bytes) -> bytes:
    """Return what the server sends until it ends the connection."""
    parts = []
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        try:
            client.sendall(sent)
            while part := client.recv(65536):
                parts.append(part)
        except ConnectionError:
            # Closed with data unread.
            pass
    return b"".join(parts)


def _status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def _head(*lines: str, path: str = "/api/v1/x") -> bytes:
    return "\r\n".join((f"POST {path} HTTP/1.1", "Host: localhost", *lines, "", "")).encode()


CHUNK = b"400\r\n" + b"x" * 1024 + b"\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        # By the declared length, although no byte of it is sent.
        (_head("Content-Length: 100000000"), 413),
        (_head("Content-Length: 1001"), 413),
        (_head("Content-Length: 1001", "Authorization: Bearer other"), 413),
        (_head("Content-Length: 4001", "Authorization: Bearer valid"), 413),
        # By the bytes that arrived.
        (_head("Transfer-Encoding: chunked") + CHUNK, 413),
        (_head("Transfer-Encoding: chunked", "Authorization: Bearer valid") + CHUNK * 4, 413),
        # By time.
        (_head("Content-Length: 10") + b"x", 408),
        (_head("Transfer-Encoding: chunked") + b"1\r\nx\r\n", 408),
        (_head(path="/" + "x" * 17_000), 414),
        (_head(*(f"X-{number}: x" for number in range(101))), 431),
        (_head("X-Long: " + "x" * 33_000), 431),
        # Closed without an answer: a head that does not end.
        (b"POST / HTTP/1.1\r\nHost: local", 0),
        (b"", 0),
        (b"POST / HTTP/1.1\r\nX-Long: " + b"x" * 200_000, 0),
    ],
)  # fmt: skip
def test_a_request_beyond_a_limit_ends(port: int, sent: bytes, status: int) -> None:
    answer = _answer(port, sent)
    assert _status(answer) == status
    if status:
        problem = json.loads(answer.partition(b"\r\n\r\n")[2]) if b"/api/" in sent else None
        assert problem is None or problem["status"] == status


def test_an_address_has_a_share_of_the_connections(
    port: int, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """Trusted proxies stand for many clients."""
    monkeypatch.setattr(http_protocol, "MAX_CONNECTIONS_OF_ADDRESS", 0)
    sent = _head("Content-Length: 0", "Connection: close")
    assert _status(_answer(port, sent)) == 0
    settings.TRUSTED_PROXIES = [ipaddress.ip_network("127.0.0.0/8")]
    assert _status(_answer(port, sent)) == 200
    settings.TRUSTED_PROXIES = []
    monkeypatch.undo()
    # Those that have ended do not count.
    assert _status(_answer(port, sent)) == 200


@pytest.mark.parametrize(
    ("sent", "size"),
    [
        (_head("Content-Length: 1000", "Connection: close") + b"x" * 1000, b"1000"),
        (
            _head("Content-Length: 4000", "Authorization: Bearer valid", "Connection: close")
            + b"x" * 4000,
            b"4000",
        ),
        # Two requests on one connection.
        (_head("Content-Length: 0") + _head("Content-Length: 1", "Connection: close") + b"x", b"1"),
    ],
)
def test_a_request_within_the_limits_is_answered(port: int, sent: bytes, size: bytes) -> None:
    answer = _answer(port, sent)
    assert _status(answer) == 200
    assert size in answer.rpartition(b"\r\n\r\n")[0] + answer.rpartition(b"\r\n\r\n")[2]
