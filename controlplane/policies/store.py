"""Reading and changing the policy of a cluster."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import ADMIN, Actor, require
from controlplane.events.publish import announce, event
from controlplane.models import Cluster, Policy
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
