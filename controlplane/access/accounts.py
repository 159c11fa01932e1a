"""Audit entries of users and groups that are created, changed or deleted."""

from typing import Any

from django.contrib.auth.models import Group, User

from controlplane.access import audit
from controlplane.access.roles import Actor, Automatic


def record_account(actor: Actor | Automatic, row: User | Group, verb: str) -> None:
    """Record that a user or a group was created ("add"), changed or deleted."""
    kind = row._meta.model_name  # noqa: SLF001 - Django's documented interface of models
    after = {} if verb == "delete" else _access_of(row)
    audit.record(actor, f"{kind}.{verb}", f"{kind} {row}", after=after)


def _access_of(row: User | Group) -> dict[str, Any]:
    """Return what roles of a user depend on, nothing of a group: its name is in the entry."""
    if not isinstance(row, User):
        return {}
    switches = {name: getattr(row, name) for name in ("is_active", "is_staff", "is_superuser")}
    return switches | {"groups": sorted(row.groups.values_list("name", flat=True))}
