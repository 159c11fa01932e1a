"""Whose a request is, by its headers: before its body is read, and before it waits for a thread.

The user of a session or token is looked up in a thread of its own and kept for a while. It decides
about bounds only: the view authenticates.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from controlplane.access.client_address import network_of
from controlplane.processes.runtime.request_bounds import MAX_OWNERS, OWNER_S, OWNERS
from controlplane.processes.serving.fair_threads import FairThreads, Owner

_CREDENTIALS: Final = frozenset({b"authorization", b"cookie"})
# Returns the user of the headers of a request, "" without a valid session or token.
UserOf = Callable[[Any], str]


class Owners:
    """Finds the owner of a request."""

    def __init__(self, user_of: UserOf) -> None:
        self._user_of = user_of
        self._threads = FairThreads(OWNERS)
        self._users: dict[bytes, tuple[str, float]] = {}

    async def owner_of(self, scope: Mapping[str, Any]) -> Owner:
        """Return the user of a valid session or token, else the network of the client."""
        headers = scope["headers"]
        given = b"\0".join(value for name, value in headers if name in _CREDENTIALS)
        anonymous = network_owner(scope)
        if not given:
            return anonymous
        # Secrets are not kept in memory for longer than their request.
        digest = hashlib.blake2b(given, digest_size=32).digest()
        user, until = self._users.get(digest, ("", 0.0))
        if until < time.monotonic():
            user = await self._threads.run(anonymous, self._user_of, headers)
            if len(self._users) >= MAX_OWNERS:
                self._users.clear()
            if user:
                self._users[digest] = user, time.monotonic() + OWNER_S
        return Owner(user, is_known=True) if user else anonymous


def network_owner(scope: Mapping[str, Any]) -> Owner:
    """Return the network of the client of a request."""
    client = scope.get("client")
    return Owner(network_of(client[0] if client else None))
