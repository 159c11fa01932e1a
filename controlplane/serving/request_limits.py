"""Limits of HTTP requests, which are checked while a request arrives, before Django has it.

A request is refused by its declared length at once, and by the bytes that arrived where none is
declared. A client without a valid session or token may send small bodies only; whether one is valid
is looked up once, before a large body is read. A slow body ends after a time by its length.
"""

import asyncio
import json
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

logger = logging.getLogger(__name__)

Message = Mapping[str, Any]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
# Returns whether the headers of a request have a valid session or token.
IsKnown = Callable[[Scope], Awaitable[bool]]

MAX_URL: Final = 16 * 1024
MAX_HEADERS: Final = 32 * 1024
MAX_HEADER_COUNT: Final = 100


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits of a body: bytes with and without a valid session or token, and time.

    A body has `body_s` seconds and one more per `least_rate` bytes.
    """

    known_bytes: int
    anonymous_bytes: int = 64 * 1024
    body_s: float = 15.0
    least_rate: int = 64 * 1024


@dataclass(slots=True)
class Refusal(Exception):
    """A request that exceeds a limit: HTTP status, code, and a sentence for people."""

    status: int
    code: str
    text: str


class LimitedRequests:
    """ASGI middleware that refuses requests beyond limits."""

    def __init__(self, application: Application, limits: RequestLimits, is_known: IsKnown) -> None:
        self._application = application
        self._limits = limits
        self._is_known = is_known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if it is within the limits, else answer 408, 413, 414 or 431."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        is_started = False

        async def sending(message: Message) -> None:
            nonlocal is_started
            is_started = True
            await send(message)

        try:
            check_head(scope)
            body = _Body(scope, receive, self._limits, self._is_known)
            await body.check_declared()
            await self._application(scope, body.receive, sending)
        except Refusal as refusal:
            logger.warning("Refused %s %.200s: %s", scope["method"], scope["path"], refusal.text)
            if not is_started:
                await _refuse(scope, send, refusal)


def check_head(scope: Scope) -> None:
    """Raise `Refusal` if the URL or the headers of a request or handshake are too long."""
    url = len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"")
    if url > MAX_URL:
        text = f"The URL has more than {MAX_URL:,} bytes: shorten its parameters"
        raise Refusal(414, "url_too_long", text)
    headers = scope["headers"]
    if len(headers) > MAX_HEADER_COUNT:
        raise Refusal(431, "headers_too_large", f"More than {MAX_HEADER_COUNT} headers")
    if sum(len(name) + len(value) for name, value in headers) > MAX_HEADERS:
        text = f"The headers have more than {MAX_HEADERS:,} bytes: delete old cookies"
        raise Refusal(431, "headers_too_large", text)


class _Body:
    """The body of a request as it arrives."""

    def __init__(
        self, scope: Scope, receive: Receive, limits: RequestLimits, is_known: IsKnown
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._limits = limits
        self._is_known = is_known
        self._most = limits.anonymous_bytes
        self._arrived = 0
        self._complete = False
        self._began: float | None = None

    async def check_declared(self) -> None:
        """Raise `Refusal` by the header Content-Length."""
        for name, value in self._scope["headers"]:
            if name == b"content-length" and value.isdigit():
                # Ten digits are more than any limit; int() of thousands takes time.
                await self._check(int(value[:10]))

    async def receive(self) -> Message:
        """Return the next message of the client. Raises `Refusal` for 408 and 413."""
        if self._complete:
            return await self._receive()
        loop = asyncio.get_running_loop()
        if self._began is None:
            self._began = loop.time()
        allowed = self._limits.body_s + self._arrived / self._limits.least_rate
        try:
            async with asyncio.timeout_at(self._began + allowed):
                message = await self._receive()
        except TimeoutError:
            text = f"The body did not arrive in {math.ceil(allowed)} s"
            raise Refusal(408, "too_slow", text) from None
        self._arrived += len(message.get("body") or b"")
        self._complete = not message.get("more_body", False)
        await self._check(self._arrived)
        return message

    async def _check(self, size: int) -> None:
        if size <= self._most:
            return
        if size <= self._limits.known_bytes and await self._is_known(self._scope):
            self._most = self._limits.known_bytes
            return
        most = self._limits.known_bytes
        if size <= most:
            most = self._limits.anonymous_bytes
            text = f"A request without a valid session or token has at most {most:,} bytes"
        else:
            text = f"A request has at most {most:,} bytes: send less at once"
        raise Refusal(413, "too_large", text)


async def _refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Send the response, as problem details to a script; the connection ends with it."""
    if scope["path"].startswith("/api/"):
        kind = b"application/problem+json"
        problem = {
            "type": f"urn:weir:problem:{refusal.code}", "title": "Refused",
            "status": refusal.status, "detail": refusal.text, "instance": scope["path"][:2000],
            "request": "", "code": refusal.code, "fields": {}, "rows": {}, "data": {},
        }  # fmt: skip
        body = json.dumps(problem).encode()
    else:
        kind, body = b"text/plain; charset=utf-8", refusal.text.encode()
    headers = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        # What the client still sends would be read as the next request.
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
