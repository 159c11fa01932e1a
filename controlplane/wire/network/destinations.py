"""The destinations that a site may connect to: one list, and the resolver of its connections.

A name is resolved once, all its addresses must be allowed, and the connection uses one of these
addresses, so a name that resolves differently later (DNS rebinding) has no effect. A refusal is the
same for an open port, a closed one, and a name that does not exist.
"""

import ipaddress
import os
import re
import socket
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
SETTING: Final = "WEIR_DESTINATIONS"
# The variable with the whole list, which settings write. Processes without it, such as producers,
# may connect to anything.
LIST: Final = "WEIR_DESTINATIONS_LIST"
PORTS: Final = {
    "http": 80, "https": 443, "redis": 6379, "rediss": 6379, "kafka": 9092, "postgresql": 5432,
}  # fmt: skip
# Entries that are compared as they are: sockets, masters of Spark, and folders for files.
_WHOLE: Final = re.compile(r"yarn|(unix:/|file:/|spark:|k8s:|s3:)//.+")
_PLACE: Final = re.compile(
    rf"({'|'.join(PORTS)})://(\[[0-9a-f:./]+\]|[a-z0-9._/-]+):([0-9]{{1,5}})(?:-([0-9]{{1,5}}))?"
)
# The last label of a name has a letter first: 0x7f.1 and 127.1 are ways to write an address.
_NAME: Final = re.compile(r"([a-z0-9_-]+\.)*[a-z_][a-z0-9_-]*")
# Addresses of a public form that the cloud around the machine answers (Azure's agent).
_METADATA: Final = frozenset({ipaddress.ip_address("168.63.129.16")})
# The IPv6 networks with IPv4 addresses in the last 32 bits, and with public addresses.
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_GLOBAL: Final = ipaddress.IPv6Network("2000::/3")


class NotAllowed(PermissionError):
    """A destination that the list of the site does not have; str() is a sentence for users."""


class _Entry(NamedTuple):
    """Hosts and ports of one protocol; `network`: None for a name."""

    protocol: str
    name: str
    network: ipaddress.IPv4Network | ipaddress.IPv6Network | None
    ports: range


def words() -> list[str]:
    """Return the entries of the list, such as `kafka://broker:9092`, `http://10.1.0.0/16:80-89`."""
    return os.environ.get(LIST, "").split()


def masters() -> list[str]:
    """Return the masters of Spark in the list."""
    return [word for word in words() if word.startswith(("yarn", "spark:", "k8s:"))]


def check_whole(word: str) -> None:
    """Raise `NotAllowed` unless the list has the word as it is, such as a Unix socket."""
    if LIST in os.environ and word not in words():
        raise _refusal(word)


def check_endpoint(endpoint: str) -> None:
    """Raise `NotAllowed` unless the list has the URL of a store as it is; "" is that of Amazon."""
    if endpoint:
        check_whole(place_of(endpoint))


def check_folder(url: str) -> None:
    """Raise `NotAllowed` unless the list has the folder of a URL (file:, s3:) or one around it."""
    folders = [word.rstrip("/") for word in words() if word.startswith(("file:", "s3:"))]
    is_listed = any(f"{url.rstrip('/')}/".startswith(f"{folder}/") for folder in folders)
    if not is_listed or {".", ".."} & {*unquote(url).split("/")}:
        raise _refusal(url)


@lru_cache(maxsize=16)
def entries_of(text: str) -> list[_Entry]:
    """Return the entries with ports of a list. Raises ValueError with a word that is none."""
    return [_entry(word) for word in text.split() if not _WHOLE.fullmatch(word)]


def addresses(
    protocol: str, host: str, port: int, more: str = "", *, is_secret: bool = False
) -> list[str]:
    """Return the addresses of a host, all of them allowed: connect to one of these.

    Public addresses are allowed by https, unless a secret of the site is sent there; `more`:
    further entries. Raises `NotAllowed`, and `OSError` if a name of the list has no address.
    """
    if LIST not in os.environ:
        return [host]
    host = host.strip("[]").rstrip(".").lower()
    # A protocol includes itself over TLS: http includes https.
    kinds = {protocol, protocol.removesuffix("s")}
    listed = entries_of(f"{os.environ[LIST]} {more}")
    entries = [entry for entry in listed if entry.protocol in kinds and port in entry.ports]
    is_named = any(entry.network is None and entry.name == host for entry in entries)
    is_web = protocol == "https" and 0 < port < 2**16 and not is_secret
    refusal = _refusal(f"{protocol}://{host[:100]}:{port}")
    if not entries and not is_web:
        raise refusal
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        if is_named:
            raise OSError(f"{host} has no address: is the name spelled right?") from None
        raise refusal from None

    def is_allowed(address: Address) -> bool:
        is_open = is_named or (is_web and _is_public(address))
        has = (entry.network is not None and address in entry.network for entry in entries)
        return any(has) or (is_open and not _is_closed(address))

    # A link-local address can carry its interface: fe80::1%eth0.
    texts = dict.fromkeys(str(answer[4][0]).partition("%")[0] for answer in answers)
    groups = [_meanings(ipaddress.ip_address(text)) for text in texts]
    if not groups or not all(is_allowed(address) for group in groups for address in group):
        raise refusal
    return [str(group[0]) for group in groups]


def address_of(url: str, *, is_secret: bool = False) -> str:
    """Return an allowed address of the host of a URL. Raises as `addresses`."""
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS[parts.scheme]
    except (ValueError, KeyError):
        raise NotAllowed(f"{url[:100]} is not a URL: write it as http://host:8081") from None
    return addresses(parts.scheme, parts.hostname or "", port, is_secret=is_secret)[0]


def place_of(url: str) -> str:
    """Return the entry for the place of a URL."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return f"unix://{unquote(parts.path)}"
    host = unquote(parts.hostname or "localhost")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}:{parts.port or PORTS[parts.scheme]}"


def _entry(word: str) -> _Entry:
    match = _PLACE.fullmatch(word.lower())
    first, last = (int(match[3]), int(match[4] or match[3])) if match else (0, 0)
    if match is None or not 0 < first <= last < 2**16:
        raise ValueError(word)
    network = None
    try:
        network = ipaddress.ip_network(match[2].strip("[]"), strict=False)
    except ValueError:
        if not _NAME.fullmatch(match[2]):
            raise ValueError(word) from None
    return _Entry(match[1], match[2], network, range(first, last + 1))


def _refusal(place: str) -> NotAllowed:
    rule = "is not in the list of the site"
    if place.startswith("http"):
        rule = f"is not an https address of a public host, and {rule}"
    hint = "check the spelling, or let an administrator of the site add it"
    return NotAllowed(f"{place} {rule} (setting {SETTING}): {hint}")


def _is_closed(address: Address) -> bool:
    """Return whether an address is of no single host, or of what surrounds the machine."""
    special = address.is_multicast or address.is_unspecified or address.is_link_local
    return special or address in _METADATA


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL:
        return address in _NAT64
    return address.is_global


def _meanings(address: Address) -> list[Address]:
    """Return the addresses that one leads to: itself, and IPv4 addresses embedded in it."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped:
        # It only stands for an IPv4 address.
        return [address.ipv4_mapped]
    embedded = [*(address.teredo or ()), *filter(None, [address.sixtofour])]
    if address in _NAT64:
        embedded.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [address, *embedded]
