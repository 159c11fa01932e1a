"""Changing the policy of a cluster."""

from collections.abc import Mapping
from datetime import time
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from controlplane.models import Cluster, Policy
from controlplane.services import audit
from controlplane.services.access import ADMIN, Actor, require
from controlplane.services.events import announce, event
from controlplane.services.policies.checking import checked

_NOT_EDITABLE: Final = ("id", "cluster", "changed_by", "changed_at")
EDITABLE: Final = tuple(
    field.name
    for field in Policy._meta.fields  # noqa: SLF001 - public API
    if field.name not in _NOT_EDITABLE
)


@transaction.atomic
def update_policy(
    actor: Actor, cluster: Cluster, changes: Mapping[str, Any], reason: str = ""
) -> Policy:
    """Change some settings of a cluster's policy; what is not named stays.

    Raises `Forbidden` for who is no admin of the cluster, and `Invalid` per field.
    """
    require(actor, ADMIN, cluster)
    # Two who change at once follow one another: each names only what it changes.
    Cluster.objects.select_for_update().get(pk=cluster.pk)
    policy = Policy.objects.filter(cluster=cluster).first() or Policy(cluster=cluster)
    before = settings_of(policy)
    checked(policy, changes, EDITABLE)
    after = settings_of(policy)
    changed = [name for name in EDITABLE if before[name] != after[name]]
    if not changed:
        return policy
    policy.changed_by, policy.changed_at = actor.name, timezone.now()
    policy.save()
    audit.record(
        actor,
        "policy.change",
        cluster.slug,
        cluster=cluster,
        reason=reason,
        before={name: before[name] for name in changed},
        after={name: after[name] for name in changed},
    )
    told = f"{actor.name} changed the policy: {', '.join(changed)}"
    announce(cluster.pk, event("policy", told))
    return policy


def settings_of(policy: Policy) -> dict[str, Any]:
    """Return every setting as a JSON value, by name."""
    return {name: _plain(getattr(policy, name)) for name in EDITABLE}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, time) else value
