"""WebSockets: of the site's own pages only, and their end when Redis or the client is away.

A browser states the origin of the page that opens one. Scheme, host and port must be those of the
handshake, with a host of ALLOWED_HOSTS, or an origin of CSRF_TRUSTED_ORIGINS, as for forms
(`django.middleware.csrf`).
"""

import logging
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from channels.security.websocket import OriginValidator, WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host
from redis.exceptions import RedisError

# RFC 6455 and IANA: "try again later".
TRY_AGAIN_LATER: Final = 1013
_SECURE: Final = ("wss", "https")
_DENIED: Final[Any] = WebsocketDenier.as_asgi()
logger = logging.getLogger(__name__)


# Channels, asgiref and uvicorn each declare other types of an ASGI application.
def close_on_loss(sockets: Any) -> Any:
    """Return an application that closes a socket with 1013 while Redis does not respond.

    The loss of the client's connection ends it, too. Both are ordinary: a line in the log, without
    a traceback.
    """

    async def application(scope: Any, receive: Any, send: Any) -> None:
        try:
            await sockets(scope, receive, send)
        except (RedisError, OSError) as lost:
            # uvicorn reports a lost client as an OSError, redis-py a lost server as one of its own.
            logger.warning("The socket %s ends: %r", scope.get("path"), lost)
            with suppress(OSError, RuntimeError):
                await send({"type": "websocket.close", "code": TRY_AGAIN_LATER})

    return application


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
