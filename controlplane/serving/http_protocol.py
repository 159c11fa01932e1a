"""uvicorn's HTTP protocol with limits of a request's head: its time, and its bytes.

uvicorn waits for ever for the head of a request, and joins its parts without a limit. A client that
sends it byte by byte would keep its connection, and with enough of them all connections.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# From the connection, or the first byte of a further request, to the end of the headers (s).
HEAD_S: Final = 10.0
# URL, headers and what arrives with them in one read of the socket.
MAX_HEAD: Final = 64 * 1024


class LimitedHeadProtocol(HttpToolsProtocol):
    """Closes a connection whose request's head is slow or too large."""

    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """Start the time of the first head."""
        super().connection_made(transport)
        self._begin_head()

    def data_received(self, data: bytes) -> None:
        """Parse data; close the connection if the head has too many bytes."""
        if self._timer is None and (self.cycle is None or self.cycle.response_complete):
            # A further request on the same connection.
            self._begin_head()
        if self._timer is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        # More data than a head may arrive together with its end.
        if self._timer is not None and self._head_bytes > MAX_HEAD:
            self._close()

    def on_headers_complete(self) -> None:
        """End the time of the head."""
        self._end_head()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the time of the head."""
        self._end_head()
        super().connection_lost(exc)

    def _begin_head(self) -> None:
        self._head_bytes = 0
        self._timer = self.loop.call_later(HEAD_S, self._close)

    def _end_head(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._end_head()
        if not self.transport.is_closing():
            self.transport.abort()
