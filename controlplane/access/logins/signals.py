"""Receivers of signals: each log-in, log-out and change of access, by pages, API or commands.

Queries that update rows without loading them send no signals; long-lived connections check their
authorization periodically as well.
"""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.db.models.signals import m2m_changed, post_delete, post_save
from django.http import HttpRequest

from controlplane.access import audit
from controlplane.access.accounts import record_account
from controlplane.access.client_address import client_address
from controlplane.access.logins import login_sessions
from controlplane.access.logins.changes import announce_access_change, announce_if_connected
from controlplane.access.request_ids import request_id
from controlplane.access.roles import Actor, Automatic
from controlplane.models import ApiToken, Grant, InitialPassword, LoginSession

SSO_BACKEND = "controlplane.access.logins.single_sign_on.SingleSignOnBackend"
# Fields of a user that no authorization depends on.
_WITHOUT_EFFECT = frozenset({"last_login", "first_name", "last_name", "email"})


class PasswordChanges:
    """A validator of passwords, which Django notifies of each password that was set."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Accept: other validators check the password."""

    def get_help_text(self) -> str:
        """Return no text for forms."""
        return ""

    def password_changed(self, password: str, user: User | None = None) -> None:
        """Record the change, by `user.changed_by` if set; the new password does not expire."""
        if user is None or user.pk is None:
            return
        InitialPassword.objects.filter(user=user).delete()
        actor: Actor = getattr(user, "changed_by", None) or Automatic("weir")
        audit.record(actor, "password.change", f"user {user.get_username()}")


def connect() -> None:
    """Connect the receivers."""
    user_logged_in.connect(_logged_in, dispatch_uid="weir.logged_in")
    user_logged_out.connect(_logged_out, dispatch_uid="weir.logged_out")
    post_save.connect(_user_saved, sender=User, dispatch_uid="weir.user_saved")
    m2m_changed.connect(
        _groups_changed, sender=User.groups.through, dispatch_uid="weir.groups_changed"
    )
    for signal in (post_save, post_delete):
        signal.connect(_grant_changed, sender=Grant, dispatch_uid="weir.grant_changed")
        signal.connect(_token_changed, sender=ApiToken, dispatch_uid="weir.token_changed")


def _logged_in(sender: Any, request: HttpRequest, user: User, **_: Any) -> None:
    by_sso = getattr(user, "backend", "") == SSO_BACKEND
    via = LoginSession.Via.SSO if by_sso else LoginSession.Via.PASSWORD
    login_sessions.start(request, user, via)
    after = {"via": str(via)}
    if factor := getattr(user, "factor", ""):
        after["factor"] = factor
    audit.record(_by(user, request), "login", f"user {user.get_username()}", after=after)


def _by(user: User, request: HttpRequest) -> Actor:
    # The request of a log-in need not have the user yet.
    return Actor(user, client_address(request), request_id(request))


def _logged_out(sender: Any, request: HttpRequest, user: User | None, **_: Any) -> None:
    identity = request.session.get(login_sessions.KEY)
    if user is None or identity is None:
        return
    rows = LoginSession.objects.filter(pk=identity)
    if login_sessions.end(rows, LoginSession.Ended.LOG_OUT):
        audit.record(_by(user, request), "logout", f"user {user.get_username()}")


def _user_saved(
    sender: Any, instance: User, created: bool, update_fields: Iterable[str] | None, **_: Any
) -> None:
    # The admin site records what it adds, with the groups, which it saves later.
    if created and not hasattr(instance, "changed_by"):
        record_account(Automatic("weir"), instance, "add")
    if created or (update_fields and _WITHOUT_EFFECT.issuperset(update_fields)):
        return
    login_sessions.end_replaced(instance)
    announce_if_connected(instance.pk)


def _groups_changed(
    sender: Any, instance: Any, action: str, reverse: bool, pk_set: set[int] | None, **_: Any
) -> None:
    if not action.startswith("post_"):
        return
    for user_id in (pk_set or ()) if reverse else (instance.pk,):
        announce_if_connected(user_id)


def _grant_changed(sender: Any, instance: Grant, **_: Any) -> None:
    announce_if_connected(instance.user_id)


def _token_changed(sender: Any, instance: ApiToken, created: bool | None = None, **_: Any) -> None:
    # A new token has no connection yet; a deleted one may have had the only one.
    if not created:
        announce_access_change(instance.user_id)
