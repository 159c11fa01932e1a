"""Who needs a second factor: users with a password, where the site requires it.

Users of single sign-on are exempt, as the provider decides about factors, and so is the demo's user
on the machine of Weir.
"""

from typing import Final

from django.conf import settings
from django.contrib.auth.models import User

from controlplane.access.roles import LOCAL_APPROVER, Actor
from controlplane.errors import Conflict
from controlplane.models import ExternalIdentity, SecondFactor

REQUIRED: Final = "required"


def is_required() -> bool:
    """Return True if users with a password must have a second factor."""
    return bool(settings.SECOND_FACTOR == REQUIRED)


def has_factor(user: User) -> bool:
    """Return True if the user has set up a second factor."""
    return SecondFactor.objects.filter(user=user.pk, confirmed_at__isnull=False).exists()


def must_set_up(user: User, *, is_local: bool) -> bool:
    """Return True if the user lacks a second factor that the site requires."""
    if not is_required() or not user.has_usable_password() or has_factor(user):
        return False
    return not (is_local and user.groups.filter(name=LOCAL_APPROVER).exists())


def require_factor(actor: Actor) -> None:
    """Raise `Conflict` (second_factor_needed) if the actor has to set up a second factor first.

    A session that began before the site required the factor continues, but creates no tokens.
    """
    user = actor.user
    if not isinstance(user, User) or ExternalIdentity.objects.filter(user=user.pk).exists():
        return
    if must_set_up(user, is_local=actor.is_local):
        text = "Set up the second factor of your account first: this site requires it"
        raise Conflict("second_factor_needed", text)
