"""Sockets of the site's own pages only: a browser states the origin of the page that opens one.

Scheme, host and port must be those of the handshake, with a host of ALLOWED_HOSTS, or an origin of
CSRF_TRUSTED_ORIGINS, as for forms (`django.middleware.csrf`).
"""

from typing import Any, Final
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import is_same_domain, split_domain_port, validate_host

_SCHEMES: Final = {"ws": "http", "wss": "https", "http": "http", "https": "https"}
_PORTS: Final = {"http": 80, "https": 443}
# Scheme, host in lower case, port.
Origin = tuple[str, str, int]


class SocketsOfOwnOrigin:
    """ASGI middleware that refuses the handshake of a page of another origin, or of none."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Pass the socket on, or refuse it with 403."""
        application = self._application if is_own_origin(scope) else WebsocketDenier()
        await application(scope, receive, send)


def is_own_origin(scope: dict[str, Any]) -> bool:
    """Return True if the page that opens a socket is of this site."""
    stated = _header(scope, b"origin")
    origin = origin_of(stated)
    if origin is None:
        return False
    host = _header(scope, b"host")
    if validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        scheme = _SCHEMES.get(scope.get("scheme", "ws"), "")
        if origin == origin_of(f"{scheme}://{host}"):
            return True
    return any(_matches(origin, trusted) for trusted in settings.CSRF_TRUSTED_ORIGINS)


def origin_of(text: str) -> Origin | None:
    """Return an origin with the default port of its scheme; None for `null` and other texts."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    scheme, host = parts.scheme, parts.hostname
    # Besides scheme, host and port an origin has nothing.
    is_whole = parts.netloc and text.lower() == f"{scheme}://{parts.netloc.lower()}"
    if scheme not in _PORTS or not host or not is_whole or "@" in parts.netloc:
        return None
    return scheme, host, _PORTS[scheme] if port is None else port


def _matches(origin: Origin, trusted: str) -> bool:
    """Return True for a trusted origin, which may be all hosts below a domain: `https://*.a.b`."""
    wanted = origin_of(trusted)
    if wanted is None or (origin[0], origin[2]) != (wanted[0], wanted[2]):
        return False
    return is_same_domain(origin[1], wanted[1].removeprefix("*"))


def _header(scope: dict[str, Any], name: bytes) -> str:
    """Return the value of a header, "" for none and for several."""
    values = [value for key, value in scope["headers"] if key == name]
    return values[0].decode("latin-1") if len(values) == 1 else ""
