"""Requests to addresses that users configure: destinations of the site, or public by https.

The connection uses the address that was checked, whatever the name resolves to later.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, urlsplit

from controlplane.wire.network.destinations import PORTS, NotAllowed, addresses
from controlplane.wire.network.requests import send

MAX_URL: Final = 500
# The status of a response suffices; a part of its body is read for error messages.
MOST_BYTES: Final = 2000
# Answers about what was sent; after all others, another attempt may succeed.
REFUSALS: Final = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY}
)


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

    Raises `AddressUnreachable`, also without a whole answer in time.
    """
    all_headers = [("Host", urlsplit(target.url).netloc), *headers.items()]
    try:
        status, answer = send("POST", target.url, target.address, all_headers, body, MOST_BYTES)
    except ConnectionError as error:
        raise AddressUnreachable(str(error)) from error
    return status, answer.decode("utf-8", "replace")


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
