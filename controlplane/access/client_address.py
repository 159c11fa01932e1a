"""The address of the client of a request, for the audit log, limits of logins and local roles.

Headers of proxies are believed from trusted proxies only (`WEIR_TRUSTED_PROXIES`):
`processes.serving.forwarded` puts what they state into the request before Django reads it.
"""

import ipaddress
from collections.abc import Sequence
from typing import Final

from django.http import HttpRequest

# Headers that a proxy adds. Without a trusted proxy their values are the client's own words.
_FORWARDED: Final = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# The addresses of one customer of a provider: a client may choose any of them.
_IPV6_PREFIX: Final = 64


def client_address(request: HttpRequest) -> str | None:
    """Return the address of the client, None if the server does not know it (a Unix socket).

    Of a request that trusted proxies forwarded it is the client of the first of them.
    """
    return request.META.get("REMOTE_ADDR") or None


def is_within(address: str, networks: Sequence[Network]) -> bool:
    """Return True if one of the networks contains the address."""
    parsed = _parsed(address)
    return parsed is not None and any(parsed in network for network in networks)


def forwarded_address(peer: str, forwarded: str, trusted: Sequence[Network]) -> str:
    """Return the client's address of a connection from `peer` with a header X-Forwarded-For.

    Each proxy appends the address that it was connected from, so the header is read from the right,
    past trusted proxies only: what is left of the first other address is the client's own text.
    """
    client = peer
    for hop in reversed(forwarded.split(",")):
        address = _parsed(_without_port(hop.strip()))
        if address is None or not is_within(client, trusted):
            break
        client = str(address)
    return client


def _without_port(hop: str) -> str:
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address, of IPv6 that stands for IPv4 the latter; None if it is none."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed


def is_local(request: HttpRequest) -> bool:
    """Return True if the client runs on this machine and no proxy forwarded the request."""
    if any(request.META.get(name) for name in _FORWARDED):
        return False
    try:
        address = ipaddress.ip_address(client_address(request) or "")
    except ValueError:
        return False
    return address.is_loopback


def network_of(address: str | None) -> str:
    """Return what limits count an address by: itself, of IPv6 its /64; "unknown" without one."""
    try:
        parsed = ipaddress.ip_address(address or "")
    except ValueError:
        return "unknown"
    if parsed.version == ipaddress.IPV4LENGTH // 8:
        return str(parsed)
    mapped = getattr(parsed, "ipv4_mapped", None)
    network = ipaddress.ip_network((parsed, _IPV6_PREFIX), strict=False)
    return str(mapped or network.network_address)
