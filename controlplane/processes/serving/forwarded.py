"""What trusted proxies state about a request: the client's address, the scheme and the host.

Without trusted proxies (the default) the headers X-Forwarded-Proto, -Host and -Port are removed,
and X-Forwarded-For has no effect but that the request is not a local one (`is_local`).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from controlplane.access.client_address import Network, forwarded_address, is_within

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]

_FOR: Final = b"x-forwarded-for"
_PROTO: Final = b"x-forwarded-proto"
_HOST: Final = b"x-forwarded-host"
# X-Forwarded-For is kept: it shows that the request was forwarded.
_REMOVED: Final = frozenset({_PROTO, _HOST, b"x-forwarded-port", b"x-forwarded-server"})
_PROTOCOLS: Final = {
    ("http", "http"): "http",
    ("http", "https"): "https",
    ("websocket", "http"): "ws",
    ("websocket", "https"): "wss",
}


class ForwardedHeaders:
    """ASGI middleware that replaces client, scheme and host by what trusted proxies state."""

    def __init__(self, application: Any, trusted: Sequence[Network]) -> None:
        self._application: Application = application
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request or socket on, as its client sent it to the first trusted proxy."""
        if scope["type"] in ("http", "websocket"):
            scope = self._resolved(scope)
        await self._application(scope, receive, send)

    def _resolved(self, scope: Scope) -> Scope:
        headers: Headers = scope["headers"]
        resolved = {**scope, "headers": [pair for pair in headers if pair[0] not in _REMOVED]}
        host, port = scope.get("client") or ("", 0)
        if not is_within(host, self._trusted):
            return resolved
        client = forwarded_address(host, _joined(headers, _FOR), self._trusted)
        # The port of a client behind a proxy is unknown.
        resolved["client"] = [client, port if client == host else 0]
        protocol = _PROTOCOLS.get((scope["type"], _nearest(headers, _PROTO).lower()))
        if protocol is not None:
            resolved["scheme"] = protocol
        if name := _nearest(headers, _HOST):
            own = [pair for pair in resolved["headers"] if pair[0] != b"host"]
            resolved["headers"] = [*own, (b"host", name.encode("latin-1"))]
        return resolved


def _joined(headers: Headers, name: bytes) -> str:
    return ",".join(value.decode("latin-1") for key, value in headers if key == name)


def _nearest(headers: Headers, name: bytes) -> str:
    """Return the last value of a header: that of the proxy which is connected to Weir."""
    return _joined(headers, name).rpartition(",")[2].strip()
