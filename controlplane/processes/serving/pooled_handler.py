"""Django's ASGI handler with threads that stay.

Django itself gives every request a thread of its own, and with it a connection to the database of
its own: opening one, reading the schema and warming a cache takes longer than many answers do. All
of Weir's views and middleware are synchronous; so each request runs as a whole, from the first
signal to the last, in one of a few threads, which keep their connections (CONN_MAX_AGE). What is
more than threads waits its turn (controlplane.processes.serving.fair_threads).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import IO, Any, Final

from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.signals import request_started
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

from controlplane.processes.runtime import request_bounds as bounds
from controlplane.processes.runtime.request_bounds import Lane
from controlplane.processes.serving.fair_threads import FairThreads, Owner
from controlplane.processes.serving.owners import network_owner
from controlplane.processes.serving.request_limits import OWNER

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
# Bytes of a file that a thread generates before they are sent.
_PART: Final = 64 * 1024
# What a request of Django keeps of its body.
_BODY_ATTRIBUTES: Final = {"_body", "_post", "_files"}


class PooledHandler(ASGIHandler):
    """Answers requests in the threads of lanes: by path, by the size of the body, or the main one.

    `lanes`: by method and path. Requests of these wait by address, as they precede a login.
    """

    def __init__(self, threads: int, lanes: Mapping[tuple[str, str], Lane] | None = None) -> None:
        super().__init__()
        # The chain as WSGI has it: it is called in a thread, not awaited.
        self.load_middleware(is_async=False)
        self._main = FairThreads(Lane("main", threads))
        self._heavy, self._records = FairThreads(bounds.HEAVY), FairThreads(bounds.RECORDS)
        chosen = lanes or {}
        made = {lane.name: FairThreads(lane) for lane in chosen.values()}
        self._lanes = {key: made[lane.name] for key, lane in chosen.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; `ValueError` for what is not HTTP."""
        if scope["type"] != "http":
            raise ValueError(f"Is not an HTTP request: {scope['type']}")
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        try:
            set_script_prefix(get_script_prefix(scope))
            threads, owner = self._lane_of(scope, body)
            if threads.lane.is_anonymous:
                scope = scope | {
                    "headers": [row for row in scope["headers"] if row[0] != b"cookie"]
                }
            response = await threads.run(owner, self._answered, scope, body)
            if response.streaming:
                try:
                    await self._send_stream(response, receive, send, owner)
                finally:
                    await self._main.run(owner, response.close)
            else:
                await self.send_response(response, send)
        finally:
            body.close()

    def _lane_of(self, scope: Scope, body: IO[bytes]) -> tuple[FairThreads, Owner]:
        lane = self._lanes.get((scope["method"], scope["path"]))
        if lane is not None:
            return lane, network_owner(scope)
        size = body.seek(0, 2)
        body.seek(0)
        threads = self._main
        if size > bounds.HEAVY_BODY:
            threads = self._records if scope["path"].endswith("/records") else self._heavy
        return threads, scope.get(OWNER) or network_owner(scope)

    async def _send_stream(self, response: Any, receive: Receive, send: Send, owner: Owner) -> None:
        """Send an answer part by part until it ends, the client is gone, or for its longest time.

        Parts of a file are generated in threads, each in its turn; none waits for the client.
        """
        if not response.is_async:
            response.streaming_content = self._parts(iter(response.streaming_content), owner)
        sending = asyncio.ensure_future(self.send_response(response, send))
        # After the body nothing comes but the end of the connection.
        disconnected = asyncio.ensure_future(receive())
        await asyncio.wait(
            {sending, disconnected}, timeout=bounds.STREAM_S, return_when=asyncio.FIRST_COMPLETED
        )
        for task in (sending, disconnected):
            if not task.done():
                task.cancel()
        with suppress(asyncio.CancelledError):
            await sending

    async def _parts(self, content: Iterator[bytes], owner: Owner) -> AsyncIterator[bytes]:
        while part := await self._main.run(owner, _next_part, content):
            yield part

    def _answered(self, scope: Scope, body: IO[bytes]) -> HttpResponseBase:
        # The signals let Django close connections that are too old, in the thread that has them.
        request_started.send(sender=self.__class__, scope=scope)
        request, refusal = self.create_request(scope, body)
        response: Any = refusal if request is None else self.get_response(request)
        response._handler_class = self.__class__  # noqa: SLF001 - as Django's own handlers do
        if not response.streaming:
            # Its content stays; request_finished is sent.
            response.close()
        if request is not None:
            # A request and its user refer to each other, so the body would stay in memory until the
            # garbage collector runs.
            for name in _BODY_ATTRIBUTES & vars(request).keys():
                delattr(request, name)
        return response  # type: ignore[no-any-return]


def _next_part(content: Iterator[bytes]) -> bytes:
    """Return the next bytes of a file, b"" at its end."""
    part = bytearray()
    for block in content:
        part += block
        if len(part) >= _PART:
            break
    return bytes(part)
