"""Reading, changing and reverting the policy of a cluster; the audit log has its changes."""

from collections.abc import Mapping
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import ADMIN, Actor, require
from controlplane.errors import NotFound
from controlplane.events.publish import announce, event
from controlplane.models import AuditEntry, Cluster, Policy
from controlplane.models.audit import POLICY_CHANGE
from controlplane.planning.adapters import adapters
from controlplane.planning.execution_plan import StepLimits
from controlplane.policies.settings import PolicySettings, settings_of


def policy_of(cluster: Cluster) -> PolicySettings:
    """Return the policy of a cluster: stored settings, and defaults of the others."""
    return stored_settings(policy_row(cluster))


def policy_row(cluster: Cluster) -> Policy:
    """Return the row of a cluster's policy, an unsaved row without one."""
    return Policy.objects.filter(cluster=cluster).first() or Policy(cluster=cluster)


def stored_settings(row: Policy) -> PolicySettings:
    """Return the settings of a row."""
    values = dict(row.settings)
    if "auto_kinds" in values:
        # A planner may be disconnected since.
        values["auto_kinds"] = [kind for kind in values["auto_kinds"] if kind in adapters()]
    return settings_of(values)


def limits_of(policy: PolicySettings) -> StepLimits:
    """Return the limits of one step of an execution."""
    return StepLimits(policy.node_moves, policy.cluster_moves, float(policy.bytes_per_s))


@transaction.atomic
def update_policy(
    actor: Actor, cluster: Cluster, changes: Mapping[str, Any], reason: str = ""
) -> PolicySettings:
    """Change some settings of a cluster's policy.

    Requires an admin of the cluster. Raises `Forbidden`, `Invalid` per field.
    """
    require(actor, ADMIN, cluster)
    # Concurrent changes are serialized: each contains only the settings that it changes.
    Cluster.objects.select_for_update().get(pk=cluster.pk)
    row = policy_row(cluster)
    policy = stored_settings(row)
    changed_policy = policy.changed(changes)
    before, after = policy.to_json(), changed_policy.to_json()
    changed = [name for name in before if before[name] != after[name]]
    if not changed:
        return policy
    row.settings |= {name: after[name] for name in changed}
    row.changed_by, row.changed_at = actor.name, timezone.now()
    row.save()
    audit.record(
        actor,
        POLICY_CHANGE,
        cluster.slug,
        cluster=cluster,
        reason=reason,
        before={name: before[name] for name in changed},
        after={name: after[name] for name in changed},
    )
    summary = f"{actor.name} changed the policy: {', '.join(changed)}"
    announce(cluster.pk, event("policy", summary))
    return changed_policy


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
