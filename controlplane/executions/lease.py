"""Leases: one process at a time advances an execution, and another one if it fails."""

import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from django.db.models import Q
from django.utils import timezone

from controlplane.models import Execution

# Longer than any step takes; after a process was killed, another one continues when it expires.
LEASE: Final = timedelta(seconds=15)


class Taken(Exception):
    """Another process holds the lease."""


@contextmanager
def lease_on(execution_id: int) -> Iterator[str]:
    """Hold the lease during the block; raises `Taken` if another process holds it.

    The lease avoids duplicate work. Exactly-once steps do not depend on it: each step is a
    transaction that is conditional on the previous step.
    """
    owner = f"{socket.gethostname()[:40]}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    if not _take(execution_id, owner):
        raise Taken
    try:
        yield owner
    finally:
        own = Execution.objects.filter(pk=execution_id, lease_owner=owner)
        own.update(lease_owner="", lease_until=None)


def _take(execution_id: int, owner: str) -> bool:
    now = timezone.now()
    free = Execution.objects.filter(
        Q(lease_owner="") | Q(lease_until=None) | Q(lease_until__lt=now), pk=execution_id
    )
    return free.update(lease_owner=owner, lease_until=now + LEASE) == 1


def renew(execution_id: int, owner: str) -> None:
    """Extend the lease. Raises `Taken` if it was lost."""
    own = Execution.objects.filter(pk=execution_id, lease_owner=owner)
    if own.update(lease_until=timezone.now() + LEASE) != 1:
        raise Taken
