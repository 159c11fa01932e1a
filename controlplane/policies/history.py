"""Changes of a cluster's policy, as the audit log has them, and their reversal."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from controlplane.access.roles import ADMIN, Actor, require
from controlplane.errors import NotFound
from controlplane.models import AuditEntry, Cluster
from controlplane.models.audit import POLICY_CHANGE
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import update_policy

MOST_CHANGES: Final = 5


@dataclass(frozen=True)
class PolicyChange:
    """A change of a policy: who made it when and why, and the changed settings by name.

    `before`, `after`: their values as JSON.
    """

    pk: int
    changed_at: datetime
    actor: str
    reason: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def changes_of(cluster: Cluster, limit: int = MOST_CHANGES) -> list[PolicyChange]:
    """Return the newest changes of a cluster's policy, newest first."""
    rows = AuditEntry.objects.filter(cluster=cluster, action=POLICY_CHANGE).order_by("-at")
    return [_change(row) for row in rows[:limit]]


def revert_change(actor: Actor, cluster: Cluster, pk: int) -> PolicySettings:
    """Give the settings of a change the values that they had before it; others stay.

    Requires an admin of the cluster. Raises `Forbidden`, `NotFound` for an unknown change, and
    `Invalid` by setting if the values do not fit the present settings.
    """
    require(actor, ADMIN, cluster)
    row = AuditEntry.objects.filter(cluster=cluster, action=POLICY_CHANGE, pk=pk).first()
    if row is None:
        raise NotFound("change of the policy", pk)
    change = _change(row)
    reason = f"Reverts the change by {change.actor} at {change.changed_at:%Y-%m-%d %H:%M:%S} UTC"
    return update_policy(actor, cluster, change.before, reason)


def _change(row: AuditEntry) -> PolicyChange:
    return PolicyChange(row.pk, row.at, row.actor, row.reason, row.before, row.after)
