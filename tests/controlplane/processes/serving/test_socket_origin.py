"""Which pages may open a socket: those of the site's own scheme, host and port."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from asgiref.testing import ApplicationCommunicator
from pytest_django import Settings

from controlplane.processes.serving.sockets import SocketsOfOwnOrigin


async def _accept(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})


def asked(origin: bytes | None, host: bytes = b"weir.example:8443", scheme: str = "wss") -> bool:
    """Return whether the handshake of a page of the origin is accepted."""
    headers = [(b"host", host)] + ([] if origin is None else [(b"origin", origin)])
    return handshake(headers, scheme)


@async_to_sync
async def handshake(headers: list[tuple[bytes, bytes]], scheme: str) -> bool:
    scope = {"type": "websocket", "scheme": scheme, "path": "/", "headers": headers}
    socket: Any = ApplicationCommunicator(SocketsOfOwnOrigin(_accept), scope)  # type: ignore[no-untyped-call]
    await socket.send_input({"type": "websocket.connect"})
    answer = await socket.receive_output(60)
    return bool(answer["type"] == "websocket.accept")


@pytest.fixture(autouse=True)
def _hosts(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["weir.example", "[::1]"]
    settings.CSRF_TRUSTED_ORIGINS = []


@pytest.mark.parametrize(
    ("origin", "host", "scheme"),
    [
        (b"https://weir.example:8443", b"weir.example:8443", "wss"),
        (b"HTTPS://Weir.Example:8443", b"WEIR.example:8443", "wss"),
        (b"https://weir.example", b"weir.example", "wss"),
        (b"https://weir.example", b"weir.example:443", "wss"),
        (b"https://weir.example:443", b"weir.example", "https"),
        (b"http://weir.example", b"weir.example:80", "ws"),
        (b"http://[::1]:8000", b"[::1]:8000", "ws"),
        (b"http://[::1]", b"[::1]", "ws"),
    ],
)
def test_own_pages_may(origin: bytes, host: bytes, scheme: str) -> None:
    assert asked(origin, host, scheme)


@pytest.mark.parametrize(
    "origin",
    [
        None, b"", b"null", b"https://weir.example", b"https://weir.example:8444",
        b"http://weir.example:8443", b"https://evil.example:8443", b"https://weir.example:8443/",
        b"https://a@weir.example:8443", b"https://weir.example:8443@evil.example",
        b"https://weir.example:8443.evil.example", b"https://sub.weir.example:8443",
        b"weir.example:8443", b"//weir.example:8443", b"file://weir.example:8443",
        b"https://weir.example:99999", b"https://weir.example:8443?x", b"https://[::1",
        b"https://weir.example:8443 https://evil.example",
        b"\xff\xfe", b"wss://weir.example:8443",
    ],
)  # fmt: skip
def test_other_pages_may_not(origin: bytes | None) -> None:
    assert not asked(origin)


def test_the_host_must_be_one_of_the_site() -> None:
    """Otherwise a name of an attacker that resolves to the site's address would do."""
    assert not asked(b"https://evil.example", b"evil.example")
    assert not asked(b"https://weir.example", b"")


def test_two_hosts_are_none() -> None:
    headers = [(b"host", b"weir.example"), (b"host", b"[::1]"), (b"origin", b"https://[::1]")]
    assert not handshake(headers, "wss")
    assert handshake(headers[1:], "wss")


@pytest.mark.parametrize(
    ("origin", "is_trusted"),
    [
        (b"https://front.example", True), (b"https://front.example:443", True),
        (b"https://front.example:8443", False), (b"http://front.example", False),
        (b"https://a.apps.example:9000", True), (b"https://a.b.apps.example:9000", True),
        (b"https://evilapps.example:9000", False), (b"https://a.apps.example", False),
    ],
)  # fmt: skip
def test_trusted_origins_are_those_of_forms(
    settings: Settings, origin: bytes, is_trusted: bool
) -> None:
    settings.CSRF_TRUSTED_ORIGINS = ["https://front.example", "https://*.apps.example:9000"]
    assert asked(origin, b"weir.example") is is_trusted
