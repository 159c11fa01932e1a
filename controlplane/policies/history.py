"""Changes of a cluster's policy, as the audit log has them, and their reversal."""

from typing import Final

from controlplane.access.roles import ADMIN, Actor, require
from controlplane.errors import NotFound
from controlplane.models import AuditEntry, Cluster
from controlplane.models.audit import POLICY_CHANGE
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import update_policy

MOST_CHANGES: Final = 5


def changes_of(cluster: Cluster, limit: int = MOST_CHANGES) -> list[AuditEntry]:
    """Return the newest changes of a cluster's policy, newest first, with the changed settings."""
    rows = AuditEntry.objects.filter(cluster=cluster, action=POLICY_CHANGE)
    return list(rows.order_by("-at")[:limit])


def revert_change(actor: Actor, cluster: Cluster, pk: int) -> PolicySettings:
    """Give the settings of a change the values that they had before it; others stay.

    Requires an admin of the cluster. Raises `Forbidden`, `NotFound` for an unknown change, and
    `Invalid` by setting if the values do not fit the present settings.
    """
    require(actor, ADMIN, cluster)
    row = AuditEntry.objects.filter(cluster=cluster, action=POLICY_CHANGE, pk=pk).first()
    if row is None:
        raise NotFound("change of the policy", pk)
    reason = f"Reverts the change by {row.actor} at {row.at:%Y-%m-%d %H:%M:%S} UTC"
    return update_policy(actor, cluster, row.before, reason)
