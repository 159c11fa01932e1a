"""The address of the client of a request, for the audit log, limits of logins and local roles."""

import ipaddress
from typing import Final

from django.http import HttpRequest

# Headers that a proxy adds. Without a trusted proxy their values are the client's own words.
_FORWARDED: Final = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP")
# The addresses of one customer of a provider: a client may choose any of them.
_IPV6_PREFIX: Final = 64


def client_address(request: HttpRequest) -> str | None:
    """Return the address of the client, None if the server does not know it (a Unix socket)."""
    return request.META.get("REMOTE_ADDR") or None


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
