"""Writing the audit log, in the transaction of the change itself."""

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
    """Write one row; a bulk request is one change and gets one row."""
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
