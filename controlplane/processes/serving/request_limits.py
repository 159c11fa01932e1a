"""Limits of HTTP requests, which are checked while a request arrives, before Django has it.

A request is refused by its declared length at once, and by the bytes that arrived where none is
declared. A client without a valid session or token may send small bodies only. A slow body ends
after a time by its length. The bodies of all requests of a process have a bound, of which no user
has more than half.
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from controlplane.processes.runtime.request_bounds import (
    MAX_HEADER_COUNT,
    MAX_HEADERS,
    MAX_URL,
    RequestLimits,
)
from controlplane.processes.serving.fair_threads import Owner
from controlplane.processes.serving.refusals import Refusal, send_refusal

logger = logging.getLogger(__name__)

Message = Mapping[str, Any]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
OwnerOf = Callable[[Scope], Awaitable[Owner]]
# The key of the owner in the scope of a request.
OWNER = "weir.owner"


class LimitedRequests:
    """ASGI middleware that refuses requests beyond limits, also those of the application."""

    def __init__(self, application: Application, limits: RequestLimits, owner_of: OwnerOf) -> None:
        self._application = application
        self._limits = limits
        self._owner_of = owner_of
        self._held = _Held(limits.held_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if it is within the limits, else send the response of a `Refusal`."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        is_started = False

        async def sending(message: Message) -> None:
            nonlocal is_started
            is_started = True
            await send(message)

        body = None
        try:
            check_head(scope)
            owner = scope[OWNER] = await self._owner_of(scope)
            body = _Body(receive, self._limits, owner, self._held)
            body.check_declared(scope)
            await self._application(scope, body.receive, sending)
        except Refusal as refusal:
            # Its path is a client's text.
            place = scope["path"][:200]
            logger.warning("Refused %s %r: %s", scope["method"], place, refusal.text)
            if not is_started:
                await send_refusal(scope, send, refusal)
        finally:
            if body is not None:
                body.release()


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


class _Held:
    """The bytes of bodies that a process holds."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._of: Counter[str] = Counter()

    def take(self, share: str, size: int) -> None:
        """Add bytes. Raises `Refusal` if fewer are free than the user holds."""
        if self._free - size < self._of[share] + size:
            text = "Weir holds too many large requests: send one after the other"
            raise Refusal(503, "bodies_held", text)
        self._free -= size
        self._of[share] += size

    def give(self, share: str, size: int) -> None:
        """Subtract bytes."""
        self._free += size
        self._of[share] -= size


class _Body:
    """The body of a request as it arrives."""

    def __init__(self, receive: Receive, limits: RequestLimits, owner: Owner, held: _Held) -> None:
        self._receive = receive
        self._limits = limits
        self._owner = owner
        self._held = held
        self._arrived = self._taken = 0
        self._complete = False
        self._began: float | None = None

    def check_declared(self, scope: Scope) -> None:
        """Raise `Refusal` by the header Content-Length."""
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit():
                # Ten digits are more than any limit; int() of thousands takes time.
                self._check(int(value[:10]))

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
        self._check(self._arrived)
        self._held.take(self._owner.share, self._arrived - self._taken)
        self._taken = self._arrived
        return message

    def release(self) -> None:
        """Count the bytes of the body as gone."""
        self._held.give(self._owner.share, self._taken)

    def _check(self, size: int) -> None:
        most = self._limits.known_bytes if self._owner.is_known else self._limits.anonymous_bytes
        if size <= most:
            return
        if size <= self._limits.known_bytes:
            text = f"A request without a valid session or token has at most {most:,} bytes"
        else:
            text = f"A request has at most {self._limits.known_bytes:,} bytes: send less at once"
        raise Refusal(413, "too_large", text)
