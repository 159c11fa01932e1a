"""uvicorn's HTTP protocol with limits of connections, and of a head: its time, and its bytes.

uvicorn waits for ever for the head of a request, and joins its parts without a limit. A client that
sends it byte by byte would keep its connection, and with enough of them all connections. So an
address has a share of them; WebSockets have limits of their own.
"""

import asyncio
from collections import Counter
from typing import Any, Final

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from controlplane.access.client_address import is_within, network_of
from controlplane.processes.runtime.request_bounds import (
    HEAD_S,
    MAX_CONNECTIONS_OF_ADDRESS,
    MAX_HEAD,
)

# Connections of each address but trusted proxies.
_CONNECTIONS: Final[Counter[str]] = Counter()


class LimitedHeadProtocol(HttpToolsProtocol):
    """Closes a connection whose request's head is slow or too large, and one too many."""

    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    # Under which the connection is counted, "" if it is not.
    _network = ""

    def connection_made(self, transport: Any) -> None:
        """Start the time of the first head; close the connection if its address has too many."""
        super().connection_made(transport)
        self._begin_head()
        host = self.client[0] if self.client else ""
        if not is_within(host, settings.TRUSTED_PROXIES):
            self._network = network_of(host)
            _CONNECTIONS[self._network] += 1
            if _CONNECTIONS[self._network] > MAX_CONNECTIONS_OF_ADDRESS:
                self._close()

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
        self._uncount()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection to the protocol of WebSockets."""
        self._uncount()
        super().handle_websocket_upgrade()

    def _uncount(self) -> None:
        if self._network:
            _CONNECTIONS[self._network] -= 1
            if not _CONNECTIONS[self._network]:
                del _CONNECTIONS[self._network]
            self._network = ""

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
