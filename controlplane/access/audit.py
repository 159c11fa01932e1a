"""Entries of the audit log, written in the transaction of the change."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import AuditEntry, Cluster


def record(
    actor: Actor,
    action: str,
    subject: str,
    *,
    cluster: Cluster | None = None,
    reason: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    seal: str = "",
) -> None:
    """Write one entry; a bulk request gets one entry."""
    AuditEntry.objects.create(
        at=timezone.now(),
        actor=actor.name,
        address=actor.address,
        cluster=cluster,
        action=action,
        object=subject[:200],
        request=actor.request[:40],
        seal=seal,
        reason=reason,
        before=dict(before or {}),
        after=dict(after or {}),
    )
