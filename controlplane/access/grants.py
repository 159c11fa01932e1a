"""Grants: roles of users on one cluster or on all, given, changed and revoked by admins.

Roles on all clusters also come from Django's groups and from single sign-on, and superusers are
admins; `roles_without_grants` lists these, which no grant changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import (
    ADMIN,
    LOCAL_APPROVER,
    ROLES,
    Actor,
    require,
    require_confirmed,
)
from controlplane.errors import Conflict, Forbidden, Invalid
from controlplane.models import Cluster, Grant
from controlplane.pagination.listing import Filters, Listing, choice_filter, text_filter
from controlplane.pagination.lookup import row_by

# The most users without grants that a list has; a site has few groups and superusers.
MAX_WITHOUT_GRANTS: Final = 1000
SUPERUSER: Final = "superuser"


@dataclass(frozen=True)
class GrantFilters(Filters):
    """Filters of the list: `user`: a part of the name; `cluster`: a slug, "" for all."""

    user: str = text_filter("user", 150)
    cluster: str = text_filter("cluster", 40)
    role: str = choice_filter("role", lambda: ROLES)


@dataclass(frozen=True)
class RoleWithoutGrant:
    """A role of a user on all clusters by a group of Django, or as a superuser."""

    user: str
    role: str
    source: str


def grants_listing(actor: Actor, filters: GrantFilters) -> Listing[Grant, Grant]:
    """Return the grants on the clusters that the actor administers, by user. Raises `Forbidden`.

    An admin of all clusters also gets the grants for all.
    """
    rows = _administered(actor)
    if filters.user:
        rows = rows.filter(user__username__icontains=filters.user)
    if filters.cluster:
        rows = rows.filter(cluster__slug=filters.cluster)
    if filters.role:
        rows = rows.filter(role=filters.role)
    return Listing(rows.select_related("user", "cluster"), ("user__username", "pk"), list, filters)


def roles_without_grants(actor: Actor) -> Sequence[RoleWithoutGrant]:
    """Return the roles on all clusters that are not grants, by user; none for other actors."""
    if not actor.may(ADMIN):
        return ()
    active = User.objects.filter(is_active=True)
    by_group = active.filter(groups__name__in=(*ROLES, LOCAL_APPROVER))
    pairs = by_group.order_by("username").values_list("username", "groups__name")
    rows = [
        RoleWithoutGrant(name, group, f"group {group}")
        for name, group in pairs[:MAX_WITHOUT_GRANTS]
    ]
    supers = active.filter(is_superuser=True).order_by("username")
    names = supers.values_list("username", flat=True)[:MAX_WITHOUT_GRANTS]
    rows += [RoleWithoutGrant(name, ADMIN, SUPERUSER) for name in names]
    return sorted(rows, key=lambda row: (row.user, row.source))


@transaction.atomic
def grant(
    actor: Actor, username: str, role: str, cluster: Cluster | None = None, reason: str = ""
) -> Grant:
    """Give a user a role on a cluster, on all without one; replace the role of an earlier grant.

    Raises `Forbidden`, `Invalid` per field, `Conflict` (last_admin) if no admin would be left, and
    for the role admin as `require_confirmed`.
    """
    _require_admin(actor, cluster)
    if role == ADMIN:
        require_confirmed(actor)
    if role not in ROLES:
        raise Invalid({"role": [f"Must be one of {', '.join(ROLES)}"]})
    user = User.objects.filter(username=username).first()
    if user is None:
        raise Invalid({"user": [f"There is no user {username}"]})
    _lock_admins(cluster)
    row = Grant.objects.filter(user=user, cluster=cluster).first()
    before = {"role": row.role} if row else {}
    if row is not None and row.role == role:
        return row
    row = row or Grant(user=user, cluster=cluster)
    row.role, row.granted_by, row.granted_at = role, actor.name, timezone.now()
    row.save()
    if before.get("role") == ADMIN:
        _keep_an_admin(cluster)
    audit.record(
        actor, "grant.change" if before else "grant.add", _label(user.username, cluster),
        cluster=cluster, reason=reason, before=before, after={"role": role},
    )  # fmt: skip
    return row


@transaction.atomic
def revoke(actor: Actor, username: str, cluster: Cluster | None = None, reason: str = "") -> None:
    """Delete the grant of a user on a cluster, or for all clusters without one.

    Raises `Forbidden`, `NotFound`, and `Conflict` (last_admin) if no admin would be left.
    """
    _require_admin(actor, cluster)
    _lock_admins(cluster)
    rows = Grant.objects.filter(cluster=cluster)
    row = row_by(rows, "grant of", user__username=username)
    before = {"role": row.role, "granted_by": row.granted_by}
    row.delete()
    if row.role == ADMIN:
        _keep_an_admin(cluster)
    audit.record(actor, "grant.revoke", _label(username, cluster),
                 cluster=cluster, reason=reason, before=before)  # fmt: skip


def is_last_admin(user: User) -> bool:
    """Return True if the user is the only active admin of all clusters."""
    admins = _admins(None)
    return admins.filter(pk=user.pk).exists() and not admins.exclude(pk=user.pk).exists()


def is_granted_admin(user: User) -> bool:
    """Return True if a grant makes the user an admin of all clusters."""
    return Grant.objects.filter(user=user.pk, cluster=None, role=ADMIN).exists()


def _admins(cluster: Cluster | None) -> "QuerySet[User]":
    """Return the active admins of a cluster, of all clusters without one."""
    granted = Q(grants__role=ADMIN) & (Q(grants__cluster=None) | Q(grants__cluster=cluster))
    admins = Q(is_superuser=True) | Q(groups__name=ADMIN) | granted
    return User.objects.filter(admins, is_active=True)


def _require_admin(actor: Actor, cluster: Cluster | None) -> None:
    # Of all clusters without one, also if the request concerns a cluster.
    require(replace(actor, cluster_id=None), ADMIN, cluster)


def _administered(actor: Actor) -> "QuerySet[Grant]":
    if actor.may(ADMIN):
        return Grant.objects.all()
    clusters = Cluster.objects.values_list("pk", flat=True)
    own = [pk for pk in clusters if actor.may(ADMIN, pk)]
    if not own:
        raise Forbidden(ADMIN)
    return Grant.objects.filter(cluster__in=own)


def _lock_admins(cluster: Cluster | None) -> None:
    """Let changes of admins wait for each other: each then counts who is left."""
    admins = Grant.objects.filter(Q(cluster=None) | Q(cluster=cluster), role=ADMIN)
    list(admins.select_for_update().order_by("pk"))


def _keep_an_admin(cluster: Cluster | None) -> None:
    if not _admins(cluster).exists():
        place = "all clusters" if cluster is None else cluster.slug
        raise Conflict("last_admin", f"Nobody would be admin of {place}: grant the role to another"
                       " user first")  # fmt: skip


def _label(username: str, cluster: Cluster | None) -> str:
    return f"user {username} on {'all clusters' if cluster is None else cluster.slug}"
