"""HTTP requests to an address that was checked, bounded in time and size.

Redirects are not followed, and no proxy of the environment is used.
"""

import ssl
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import httpcore

# A receiver should answer before it processes a message.
TIMEOUT_S: Final = 5.0
# One whole request: a receiver that sends a byte every four seconds must not block the sender.
LONGEST_S: Final = 10.0
_TIMEOUTS: Final = ("connect", "read", "write", "pool")
_FAILURES: Final = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError)


def send(
    method: str, url: str, address: str, headers: Sequence[Any], body: bytes, most_bytes: int
) -> tuple[int, bytes]:
    """Send a request to an address; return the answer's status and the beginning of its body.

    Raises `ConnectionError`, also without a whole answer after `LONGEST_S`.
    """
    backend = _Pinned(address, time.monotonic() + LONGEST_S)
    timeouts = {"timeout": dict.fromkeys(_TIMEOUTS, TIMEOUT_S)}
    with httpcore.ConnectionPool(ssl_context=_ssl(), network_backend=backend, retries=0) as pool:
        try:
            with pool.stream(
                method, url, headers=headers, content=body, extensions=timeouts
            ) as response:
                return response.status, _beginning(response.iter_stream(), most_bytes)
        except _FAILURES as error:
            raise ConnectionError(str(error) or type(error).__name__) from error


class _Pinned(httpcore.NetworkBackend):
    """Connects to one address for any name; TLS still verifies the certificate of the name."""

    def __init__(self, address: str, ends_at: float) -> None:
        self._address = address
        self._ends_at = ends_at
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        connection = self._sockets.connect_tcp(
            self._address, port, timeout, local_address, socket_options
        )
        return _Ending(connection, self._ends_at)


class _Ending(httpcore.NetworkStream):
    """A connection with a deadline (monotonic) for the whole request."""

    def __init__(self, connection: httpcore.NetworkStream, ends_at: float) -> None:
        self._connection = connection
        self._ends_at = ends_at

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._connection.read(max_bytes, self._left(httpcore.ReadTimeout, timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._connection.write(buffer, self._left(httpcore.WriteTimeout, timeout))

    def close(self) -> None:
        self._connection.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = self._left(httpcore.ConnectTimeout, timeout)
        secured = self._connection.start_tls(ssl_context, server_hostname, left)
        return _Ending(secured, self._ends_at)

    def get_extra_info(self, info: str) -> Any:
        return self._connection.get_extra_info(info)

    def _left(self, late: type[httpcore.TimeoutException], timeout: float | None) -> float:
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise late(f"No whole answer within {LONGEST_S:g} s")
        return left if timeout is None else min(left, timeout)


@lru_cache(maxsize=1)
def _ssl() -> ssl.SSLContext:
    return ssl.create_default_context()


def _beginning(chunks: Iterable[bytes], most_bytes: int) -> bytes:
    read = b""
    for chunk in chunks:
        read += chunk
        if len(read) >= most_bytes:
            break
    return read[:most_bytes]
