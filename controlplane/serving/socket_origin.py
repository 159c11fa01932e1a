"""Sockets of the site's own pages only: a browser states the origin of the page that opens one.

Scheme, host and port must be those of the handshake, with a host of ALLOWED_HOSTS, or an origin of
CSRF_TRUSTED_ORIGINS, as for forms (`django.middleware.csrf`).
"""

from typing import Any, Final
from urllib.parse import ParseResult

from channels.security.websocket import OriginValidator
from django.conf import settings
from django.http.request import split_domain_port, validate_host

_SECURE: Final = ("wss", "https")


class SocketsOfOwnOrigin:
    """ASGI middleware that refuses (403) the handshake of a page of another origin, or of none."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Pass the socket on, or refuse it."""
        own = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        kind = "https" if scope.get("scheme") in _SECURE else "http"
        allowed = [name.replace("://*.", "://.") for name in settings.CSRF_TRUSTED_ORIGINS]
        if len(own) == 1 and validate_host(split_domain_port(own[0])[0], settings.ALLOWED_HOSTS):
            allowed.append(f"{kind}://{own[0]}")
        await _Validator(self._application, allowed)(scope, receive, send)


class _Validator(OriginValidator):  # type: ignore[misc]
    """Refuses what is no origin: it has a scheme, a host and perhaps a port, nothing else."""

    def valid_origin(self, parsed_origin: ParseResult | None) -> bool:
        try:
            is_origin = parsed_origin is not None and not any(
                (parsed_origin.username, *parsed_origin[2:])
            )
            return is_origin and bool(super().valid_origin(parsed_origin))
        except ValueError:
            return False
