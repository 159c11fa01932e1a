"""Django's ASGI handler with a thread pool.

Django itself gives every request a thread of its own, and with it a connection to the database of
its own: opening one, reading the schema and warming a cache takes longer than many answers do. All
of Weir's views and middleware are synchronous; so each request runs as a whole, from the first
signal to the last, in one of a few threads, which keep their connections (CONN_MAX_AGE). What is
more than threads waits its turn.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any

from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.signals import request_started
from django.http import FileResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class PooledHandler(ASGIHandler):
    """Answers requests in a pool of threads."""

    def __init__(self, threads: int) -> None:
        super().__init__()
        # The chain as WSGI has it: it is called in a thread, not awaited.
        self.load_middleware(is_async=False)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="web")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; `ValueError` for what is not HTTP."""
        if scope["type"] != "http":
            raise ValueError(f"Is no HTTP request: {scope['type']}")
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        try:
            set_script_prefix(get_script_prefix(scope))
            response = await self._in_thread(self._answered, scope, body)
            if response.streaming:
                await self._send_stream(response, receive, send)
                await self._in_thread(response.close)
            else:
                await self.send_response(response, send)
        finally:
            body.close()

    async def _send_stream(self, response: Any, receive: Receive, send: Send) -> None:
        """Send an answer part by part until it ends, or until the client is gone."""
        sending = asyncio.ensure_future(self.send_response(response, send))
        # After the body nothing comes but the end of the connection.
        disconnected = asyncio.ensure_future(receive())
        await asyncio.wait({sending, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        for task in (sending, disconnected):
            if not task.done():
                task.cancel()
        with suppress(asyncio.CancelledError):
            await sending

    async def _in_thread(self, work: Any, *arguments: Any) -> Any:
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, context.run, work, *arguments)

    def _answered(self, scope: Scope, body: IO[bytes]) -> HttpResponseBase:
        # The signals let Django close connections that are too old, in the thread that has them.
        request_started.send(sender=self.__class__, scope=scope)
        request, refusal = self.create_request(scope, body)
        response: Any = refusal if request is None else self.get_response(request)
        response._handler_class = self.__class__  # noqa: SLF001 - as Django's own handlers do
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        if not response.streaming:
            # Its content stays; request_finished is sent.
            response.close()
        return response  # type: ignore[no-any-return]
