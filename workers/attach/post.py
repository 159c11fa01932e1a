"""One POST to Weir; the token goes to that address and to no other."""

from __future__ import annotations

import ipaddress
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

PATH: Final = "/api/v1/attached/events"
TIMEOUT_SECONDS: Final = 10.0
_ERROR_BYTES: Final = 300


class Unreachable(Exception):
    """No answer came; str() is the reason."""


class Answer(NamedTuple):
    """A status and, for a refusal, the start of the body."""

    status: int
    reason: str = ""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would take the token to another address, and turn the POST into a GET."""

    def redirect_request(self, *parts: Any, **named: Any) -> None:
        return None


class Poster:
    """Sends JSON bodies with a bearer token; raises ValueError for an unusable url or token."""

    def __init__(self, url: str, token: str, timeout: float = TIMEOUT_SECONDS) -> None:
        parts = urlsplit(url.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the url of Weir must begin with https:// or http://")
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise ValueError("the token of Weir is empty or no token")
        self.address = url.strip().rstrip("/") + PATH
        self.plain = parts.scheme == "http" and not _is_this_machine(parts.hostname)
        self._token = token
        self._timeout = timeout
        self._opener = urllib.request.build_opener(_NoRedirects)

    def __call__(self, body: bytes) -> Answer:
        """Return the answer; raises `Unreachable`."""
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
            self.address,
            data=body,
            headers={
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/json",
                "User-Agent": "weir-attach/1",
            },
            method="POST",
        )
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                return Answer(int(answer.status))
        except urllib.error.HTTPError as refusal:
            with refusal:
                return Answer(refusal.code, _body_of(refusal))
        except (OSError, HTTPException, ValueError) as failure:
            raise Unreachable(str(failure) or type(failure).__name__) from None


def _body_of(refusal: urllib.error.HTTPError) -> str:
    try:
        return refusal.read(_ERROR_BYTES).decode("utf-8", "replace")
    except (OSError, HTTPException, ValueError):
        return ""


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
