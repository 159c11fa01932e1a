"""Validated changes of a cluster's fields, with an audit entry."""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from controlplane.access import audit
from controlplane.access.roles import Actor
from controlplane.errors import Invalid
from controlplane.models import Cluster


def clean_fields(cluster: Cluster, *names: str) -> None:
    """Raise `Invalid` for faults of the named fields of a cluster."""
    others = {field.name for field in Cluster._meta.fields} - set(names)  # noqa: SLF001 - Django's public name
    try:
        cluster.clean_fields(exclude=others)
    except ValidationError as refusal:
        raise Invalid(refusal.message_dict) from refusal


@transaction.atomic
def change_fields(
    actor: Actor, cluster: Cluster, action: str, values: Mapping[str, Any], reason: str = ""
) -> bool:
    """Save changed fields and write an audit entry; return True if a value has changed.

    Raises `Invalid`.
    """
    before = {name: getattr(cluster, name) for name in values}
    after = dict(values)
    if before == after:
        return False
    for name, value in values.items():
        setattr(cluster, name, value)
    clean_fields(cluster, *values)
    cluster.save(update_fields=list(values))
    subject = cluster.slug
    audit.record(actor, action, subject, cluster=cluster, reason=reason, before=before, after=after)
    return True
