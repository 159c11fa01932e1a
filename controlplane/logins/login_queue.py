"""The queue of requests that hash a password, in front of the threads that answer requests.

A process answers one of them at a time. Others wait in the event loop, where they hold no thread,
and are refused beyond a number (503) or a share of one address (429). Their bodies are read here,
so a client that sends slowly holds no place in the queue.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from controlplane.access.client_address import network_of

logger = logging.getLogger(__name__)

Message = Mapping[str, Any]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

# At half a second per hash the last of the queue waits for ten seconds.
MAX_WAITING: Final = 20
MAX_WAITING_OF_ADDRESS: Final = 10
# A form has a few hundred bytes.
MAX_BODY: Final = 64 * 1024
BODY_S: Final = 10.0
RETRY_AFTER_S: Final = 5


class LoginQueue:
    """ASGI middleware that queues the POSTs to some paths."""

    def __init__(self, application: Application, paths: frozenset[str]) -> None:
        self._application = application
        self._paths = paths
        self._running = asyncio.Semaphore(1)
        self._waiting: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, in its turn if it is one of the queue."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in self._paths:
            await self._application(scope, receive, send)
            return
        client = scope.get("client")
        network = network_of(client[0] if client else None)
        status = self._refusal(network)
        if status is not None:
            await _refuse(send, status)
            return
        self._waiting[network] += 1
        try:
            await self._in_turn(scope, receive, send)
        finally:
            self._waiting[network] -= 1
            if not self._waiting[network]:
                del self._waiting[network]

    def _refusal(self, network: str) -> int | None:
        if self._waiting[network] >= MAX_WAITING_OF_ADDRESS:
            return 429
        return 503 if self._waiting.total() >= MAX_WAITING else None

    async def _in_turn(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await asyncio.wait_for(_body_of(receive), BODY_S)
        except TimeoutError:
            await _refuse(send, 408)
            return
        if body is None:
            await _refuse(send, 413)
            return
        async with self._running:
            await self._application(scope, _replay(body, receive), send)


async def _body_of(receive: Receive) -> bytes | None:
    """Return the body of a request; None if it is too large, or the client has left."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that returns the body first, then what the client sends."""
    parts: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return parts.pop() if parts else await receive()

    return next_message


async def _refuse(send: Send, status: int) -> None:
    text = {
        408: "The form did not arrive in time.",
        413: "The form is too large.",
        429: "Too many logins from your address wait: try again in a few seconds.",
        503: "Too many logins wait: try again in a few seconds.",
    }[status]
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"cache-control", b"no-store, private"),
        (b"retry-after", str(RETRY_AFTER_S).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})
