"""Actors and their roles: viewer, operator, approver and admin, on all clusters or on one.

Each role includes the roles before it. Django groups of these names, and grants without a cluster,
hold on every cluster; a superuser is admin everywhere.
"""

import time
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Final

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.http import HttpRequest

from controlplane.access.client_address import client_address, is_local
from controlplane.access.request_ids import request_id
from controlplane.errors import ConfirmationNeeded, Forbidden, LoginNeeded
from controlplane.models import ApiToken, Cluster, Grant

VIEWER: Final = Grant.Role.VIEWER.value
OPERATOR: Final = Grant.Role.OPERATOR.value
APPROVER: Final = Grant.Role.APPROVER.value
ADMIN: Final = Grant.Role.ADMIN.value
# Within which a user confirms once: enough for a form and its mistakes.
CONFIRMED_FOR: Final = timedelta(minutes=10)
# The moment of the confirmation in Django's session, in seconds since 1970.
CONFIRMED_AT: Final = "confirmed_at"
# Each role includes the roles before it.
ROLES: Final = (VIEWER, OPERATOR, APPROVER, ADMIN)
# What a token may be limited to: also to appends, which is less than every role.
PRODUCER: Final = ApiToken.PRODUCER
TOKEN_ROLES: Final = (PRODUCER, *ROLES)
# A group of the demo's user: an approver on the machine of Weir, an operator elsewhere.
LOCAL_APPROVER: Final = "local approver"
_RANK: Final = {role: rank for rank, role in enumerate(TOKEN_ROLES)}


@dataclass(frozen=True)
class Actor:
    """A person or script with a user account, and the address they come from.

    `request`: the id of the HTTP request. `cluster_id`: the cluster of the request, whose grants
    count besides the grants for all. `ceiling`: the highest role that the token allows, empty for
    no limit; `only`: the only cluster that the token allows, None for all. `token`: the id of the
    token, None for a session. `is_local`: True if the client runs on this machine.
    `is_confirmed`: True if the user has confirmed in this session, within `CONFIRMED_FOR`.
    """

    user: AbstractBaseUser | AnonymousUser
    address: str | None = None
    request: str = ""
    cluster_id: int | None = None
    ceiling: str = ""
    only: int | None = None
    token: int | None = None
    is_local: bool = False
    is_confirmed: bool = False

    @property
    def name(self) -> str:
        """Return the user name that rows and the audit log keep."""
        return self.user.get_username()

    def on(self, cluster: Cluster) -> "Actor":
        """Return this actor, acting on a cluster."""
        if self.cluster_id == cluster.pk:
            return self
        actor = replace(self, cluster_id=cluster.pk)
        if "_ranks" in self.__dict__:
            actor.__dict__["_ranks"] = self._ranks
        return actor

    @cached_property
    def _ranks(self) -> dict[int | None, int]:
        """Return the rank by cluster; it is read once, so an actor is valid for one request."""
        if not isinstance(self.user, User) or not self.user.is_active:
            return {}
        if self.user.is_superuser:
            return {None: _RANK[ADMIN]}
        names = (*ROLES, LOCAL_APPROVER)
        groups = self.user.groups.filter(name__in=names).values_list("name", flat=True)
        highest = max((self._rank_of(name) for name in groups), default=0)
        ranks: dict[int | None, int] = {None: highest}
        for cluster, role in self.user.grants.values_list("cluster", "role"):
            ranks[cluster] = max(ranks.get(cluster, 0), _RANK[role])
        return ranks

    def _rank_of(self, group: str) -> int:
        if group == LOCAL_APPROVER:
            return _RANK[APPROVER if self.is_local else OPERATOR]
        return _RANK[group]

    def may(self, role: str, cluster_id: int | None = None) -> bool:
        """Return True if the actor has this role or a higher one, on a cluster or on all."""
        wanted = cluster_id or self.cluster_id
        if self.only is not None and wanted != self.only:
            return False
        rank = max(self._ranks.get(None, 0), self._ranks.get(wanted, 0))
        most = _RANK[self.ceiling] if self.ceiling else rank
        return min(rank, most) >= _RANK[role]

    def as_producer(self) -> "Actor":
        """Return this actor for an endpoint of producers, where their token is an operator's."""
        return replace(self, ceiling=OPERATOR) if self.ceiling == PRODUCER else self

    @property
    def clusters(self) -> frozenset[int] | None:
        """Return the ids of the clusters that are visible to the actor, None for all."""
        if self.ceiling == PRODUCER:
            return frozenset()
        if self._ranks.get(None, 0):
            return None if self.only is None else frozenset({self.only})
        granted = frozenset(cluster for cluster in self._ranks if cluster is not None)
        return granted if self.only is None else granted & {self.only}

    def role(self, cluster_id: int | None = None) -> str:
        """Return the actor's highest role on a cluster, "" for none."""
        return next((role for role in reversed(ROLES) if self.may(role, cluster_id)), "")

    @property
    def is_member(self) -> bool:
        """Return True if at least one cluster is, or can become, visible to the actor."""
        return self.clusters is None or bool(self.clusters)

    @property
    def is_any_admin(self) -> bool:
        """Return True if the actor is an admin on at least one cluster."""
        clusters = (*self._ranks, None)
        return any(self.may(ADMIN, cluster) for cluster in clusters)

    @property
    def is_viewer(self) -> bool:
        """Return True if the actor is a viewer."""
        return self.may(VIEWER)

    @property
    def is_operator(self) -> bool:
        """Return True if the actor is an operator."""
        return self.may(OPERATOR)

    @property
    def is_admin(self) -> bool:
        """Return True if the actor is an admin."""
        return self.may(ADMIN)


class Automatic(Actor):
    """A component of Weir that acts without a user: a name in the audit log, without a role."""

    def __init__(self, name: str, address: str | None = None, request: str = "") -> None:
        super().__init__(AnonymousUser(), address, request)
        object.__setattr__(self, "_name", name)

    def on(self, cluster: Cluster) -> "Actor":
        """Return itself, as it has no role on any cluster."""
        return self

    @property
    def name(self) -> str:
        """Return the name of the component."""
        return str(self.__dict__["_name"])


def actor_of(request: HttpRequest) -> Actor:
    """Return the actor of a request, with its address."""
    confirmed_at = getattr(request, "session", {}).get(CONFIRMED_AT, 0.0)
    return Actor(
        request.user, client_address(request), request_id(request), is_local=is_local(request),
        is_confirmed=0 <= time.time() - confirmed_at < CONFIRMED_FOR.total_seconds(),
    )  # fmt: skip


def require_confirmed(actor: Actor) -> None:
    """Require that the user has confirmed to be present, for changes of what gives access.

    Raises `LoginNeeded` for tokens, `ConfirmationNeeded`.
    """
    if actor.token is not None:
        raise LoginNeeded
    if not actor.is_confirmed:
        raise ConfirmationNeeded


def require(actor: Actor, role: str, cluster: Cluster | None = None) -> None:
    """Raise `Forbidden` unless the actor has the role: on the cluster, or on all without one."""
    if not actor.may(role, None if cluster is None else cluster.pk):
        raise Forbidden(role)


def require_member(actor: Actor) -> None:
    """Raise `Forbidden` unless the actor is a viewer of at least one cluster."""
    if not actor.is_member:
        raise Forbidden(VIEWER)


def require_viewer(actor: Actor, cluster: Cluster | None = None) -> None:
    """Raise `Forbidden` unless the actor is a viewer."""
    require(actor, VIEWER, cluster)


def require_operator(actor: Actor, cluster: Cluster | None = None) -> None:
    """Raise `Forbidden` unless the actor is an operator."""
    require(actor, OPERATOR, cluster)
