"""Sockets of the site's own pages only: a browser states the origin of the page that opens one.

Scheme, host and port must be those of the handshake, with a host of ALLOWED_HOSTS, or an origin of
CSRF_TRUSTED_ORIGINS, as for forms (`django.middleware.csrf`).
"""

from typing import Any, Final
from urllib.parse import urlsplit

from channels.security.websocket import OriginValidator, WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host

_SECURE: Final = ("wss", "https")
_DENIED: Final[Any] = WebsocketDenier.as_asgi()


class SocketsOfOwnOrigin:
    """ASGI middleware that refuses (403) the handshake of a page of another origin, or of none."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Pass the socket on, or refuse it."""
        allowed = [name.replace("://*.", "://.") for name in settings.CSRF_TRUSTED_ORIGINS]
        host, origin = _header(scope, b"host"), _header(scope, b"origin")
        if validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
            kind = "https" if scope.get("scheme") in _SECURE else "http"
            allowed.append(f"{kind}://{host}")
        checked: Any = OriginValidator(self._application, allowed)
        await (checked if _is_origin(origin) else _DENIED)(scope, receive, send)


def _header(scope: dict[str, Any], name: bytes) -> str:
    """Return the value of a header, "" for none and for several."""
    values = [value for key, value in scope["headers"] if key == name]
    return values[0].decode("latin-1") if len(values) == 1 else ""


def _is_origin(text: str) -> bool:
    """Return True for a scheme, a host and perhaps a port, with nothing else."""
    try:
        parts = urlsplit(text)
        return parts.port != 0 and not any((parts.username, *parts[2:]))
    except ValueError:
        return False
