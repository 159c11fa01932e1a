"""Who acts and what they may do: roles are the Django groups viewer and operator.

An operator may all that a viewer may; a superuser may all.
"""

from dataclasses import dataclass
from functools import cached_property

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.http import HttpRequest

from controlplane.errors import Forbidden

VIEWER = "viewer"
OPERATOR = "operator"


@dataclass(frozen=True)
class Actor:
    """A person or script with a user account, and the address they come from."""

    user: AbstractBaseUser | AnonymousUser
    address: str | None = None

    @property
    def name(self) -> str:
        """Return the user name that rows and the audit log keep."""
        return self.user.get_username()

    @cached_property
    def roles(self) -> frozenset[str]:
        """Return the roles; read once per actor, so an actor lives for one request."""
        if not isinstance(self.user, User) or not self.user.is_active:
            return frozenset()
        if self.user.is_superuser:
            return frozenset({VIEWER, OPERATOR})
        groups = frozenset(self.user.groups.values_list("name", flat=True))
        return groups | {VIEWER} if OPERATOR in groups else groups

    @property
    def is_viewer(self) -> bool:
        """Tell whether the actor may see."""
        return VIEWER in self.roles

    @property
    def is_operator(self) -> bool:
        """Tell whether the actor may change."""
        return OPERATOR in self.roles


class Automatic(Actor):
    """A part of Weir that acts by itself: the audit log names it, and it has no role."""

    def __init__(self, name: str) -> None:
        super().__init__(AnonymousUser())
        object.__setattr__(self, "_name", name)

    @property
    def name(self) -> str:
        """Return the name of the part."""
        return str(self.__dict__["_name"])


def actor_of(request: HttpRequest) -> Actor:
    """Return who sends the request, from where."""
    return Actor(request.user, request.META.get("REMOTE_ADDR") or None)


def require_viewer(actor: Actor) -> None:
    """Raise `Forbidden` unless the actor may see."""
    if not actor.is_viewer:
        raise Forbidden(VIEWER)


def require_operator(actor: Actor) -> None:
    """Raise `Forbidden` unless the actor may change."""
    if not actor.is_operator:
        raise Forbidden(OPERATOR)
