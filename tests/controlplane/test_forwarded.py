"""Headers of proxies are believed from trusted proxies only, for requests and sockets alike."""

import ipaddress
from typing import Any

import pytest

from controlplane.access.client_address import forwarded_address
from controlplane.installation import env
from controlplane.processes.runtime import web
from controlplane.processes.serving.forwarded import ForwardedHeaders

PROXIES = [ipaddress.ip_network(text) for text in ("10.0.0.0/8", "2001:db8::/32")]


@pytest.mark.parametrize(
    ("peer", "header", "client"),
    [
        # No proxy: the header is the client's own text.
        ("192.0.2.1", "198.51.100.9", "192.0.2.1"),
        ("127.0.0.1", "198.51.100.9", "127.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.9", "198.51.100.9"),
        # The client wrote the first address, its proxy appended the second.
        ("10.0.0.1", "127.0.0.1, 198.51.100.9", "198.51.100.9"),
        ("10.0.0.1", "1.2.3.4, 198.51.100.9, 10.0.0.2", "198.51.100.9"),
        ("10.0.0.1", "10.9.9.9, 198.51.100.9, 10.0.0.2", "198.51.100.9"),
        ("10.0.0.1", "nonsense", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.9, nonsense, 10.0.0.2", "10.0.0.2"),
        ("::ffff:10.0.0.1", "198.51.100.9:4711", "198.51.100.9"),
        ("2001:db8::1", "[2001:db9::7]:4711", "2001:db9::7"),
        ("", "198.51.100.9", ""),
    ],
)
def test_the_header_is_read_past_trusted_proxies(peer: str, header: str, client: str) -> None:
    assert forwarded_address(peer, header, PROXIES) == client


async def resolved(kind: str, peer: str, trusted: list[Any]) -> dict[str, Any]:
    """Return the scope that the application behind the middleware receives."""
    seen: dict[str, Any] = {}

    async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
        seen.update(scope)

    scope = {
        "type": kind, "scheme": "http" if kind == "http" else "ws", "client": (peer, 5),
        "headers": [
            (b"host", b"inner"), (b"x-forwarded-for", b"127.0.0.1"),
            (b"x-forwarded-for", b"198.51.100.9"), (b"x-forwarded-proto", b"http, https"),
            (b"x-forwarded-host", b"weir.example"), (b"x-forwarded-port", b"443"),
        ],
    }  # fmt: skip
    await ForwardedHeaders(application, trusted)(scope, None, None)  # type: ignore[arg-type]
    return seen


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_client_scheme_and_host_are_those_of_a_trusted_proxy(kind: str) -> None:
    secure = "https" if kind == "http" else "wss"
    believed = await resolved(kind, "10.0.0.1", PROXIES)
    assert (believed["client"][0], believed["scheme"]) == ("198.51.100.9", secure)
    assert dict(believed["headers"])[b"host"] == b"weir.example"
    for trusted, peer in ((PROXIES, "127.0.0.1"), ([], "10.0.0.1")):
        own = await resolved(kind, peer, trusted)
        assert (own["client"][0], own["scheme"] == secure) == (peer, False)
        headers = dict(own["headers"])
        assert headers[b"host"] == b"inner"
        # It stays, so that a forwarded request is not a local one.
        assert set(headers) == {b"host", b"x-forwarded-for"}


def test_the_server_itself_believes_no_header() -> None:
    """Otherwise uvicorn replaces the client before the middleware, for every local process."""
    config = web.configuration()
    config.load()
    assert isinstance(config.loaded_app, ForwardedHeaders)


def test_a_setting_that_is_no_network_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_TRUSTED_PROXIES", "10.0.0.0/8, 192.0.2.7")
    assert len(env.networks("WEIR_TRUSTED_PROXIES")) == 2
    for wrong in ("10.0.0.1/8", "proxy.example", "*"):
        monkeypatch.setenv("WEIR_TRUSTED_PROXIES", wrong)
        with pytest.raises(env.EnvironmentValueError):
            env.networks("WEIR_TRUSTED_PROXIES")
