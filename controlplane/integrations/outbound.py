"""Requests to addresses that users configure: destinations of the site, or public by https.

The connection uses the address that was checked, whatever the name resolves to later. Redirects are
not followed, and no proxy of the environment is used.
"""

import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, urlsplit

import httpcore

from controlplane.wire.network.destinations import PORTS, NotAllowed, addresses

MAX_URL: Final = 500
# A receiver should answer before it processes a message.
TIMEOUT_S: Final = 5.0
# One whole request: a receiver that sends a byte every four seconds must not block the sender.
LONGEST_S: Final = 10.0
# The status of a response suffices; a part of its body is read for error messages.
MOST_BYTES: Final = 2000


class AddressRejected(Exception):
    """An address that is not allowed; str() is the reason."""


class AddressUnreachable(Exception):
    """An address that does not respond; str() is the reason."""


def ascii_url(url: str) -> str:
    """Return a URL as it is sent: its host in IDNA, other characters percent-encoded.

    Raises `AddressRejected` for a host that has no such form.
    """
    if url.isascii():
        return url
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        encoded = host if host.isascii() else host.encode("idna").decode()
        # The authority as it is written, with another host.
        place = parts.netloc.lower().rfind(host)
        authority = parts.netloc[:place] + encoded + parts.netloc[place + len(host) :]
        return quote(parts._replace(netloc=authority).geturl(), safe=_ASCII)
    except ValueError as error:
        text = "Must name a host that has a form in ASCII (IDNA): write it as xn--…"
        raise AddressRejected(text) from error


_ASCII: Final = "".join(map(chr, range(128)))


@dataclass(frozen=True)
class Target:
    """The target of a request: the given URL, and the resolved address."""

    url: str
    address: str


def resolved(url: str) -> Target:
    """Return the target of a URL.

    Raises `AddressRejected`, and `AddressUnreachable` if its name does not resolve.
    """
    url = ascii_url(url)
    try:
        address = addresses(*_parts(url))[0]
    except NotAllowed as refusal:
        raise AddressRejected(str(refusal)) from None
    except OSError as error:
        raise AddressUnreachable(str(error)) from error
    return Target(url, address)


def post(target: Target, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
    """Send a POST and return the answer's status and the beginning of its body.

    Raises `AddressUnreachable`, also without a whole answer after `LONGEST_S`.
    """
    backend = _Pinned(target.address, time.monotonic() + LONGEST_S)
    with httpcore.ConnectionPool(ssl_context=_ssl(), network_backend=backend, retries=0) as pool:
        try:
            with pool.stream(
                "POST",
                target.url,
                headers=[("Host", urlsplit(target.url).netloc), *headers.items()],
                content=body,
                extensions={"timeout": dict.fromkeys(_TIMEOUTS, TIMEOUT_S)},
            ) as response:
                return response.status, _beginning(response.iter_stream())
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
            raise AddressUnreachable(str(error) or type(error).__name__) from error


_TIMEOUTS: Final = ("connect", "read", "write", "pool")


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


def _parts(url: str) -> tuple[str, str, int]:
    if len(url) > MAX_URL or any(
        character.isspace() or ord(character) < ord(" ") for character in url
    ):
        raise AddressRejected(f"Is not a URL of at most {MAX_URL} characters")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise AddressRejected("Is not a URL: write it as https://host/path") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise AddressRejected("Must begin with https:// and name a host")
    if parts.username is not None or parts.password is not None:
        raise AddressRejected(
            "Must hold no user and no password: the signature identifies the sender"
        )
    if parts.fragment:
        raise AddressRejected("Must have no fragment")
    return parts.scheme, parts.hostname, port or PORTS[parts.scheme]


def _beginning(chunks: Iterable[bytes]) -> str:
    read = b""
    for chunk in chunks:
        read += chunk
        if len(read) >= MOST_BYTES:
            break
    return read[:MOST_BYTES].decode("utf-8", "replace")
