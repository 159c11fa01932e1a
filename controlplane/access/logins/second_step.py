"""The second step of a log-in: the password of a user was right, but no session has begun.

The anonymous session of the browser names the user for a few minutes. It authenticates nothing.
"""

from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth import login
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from controlplane.access.client_address import client_address, is_local
from controlplane.access.request_ids import request_id
from controlplane.access.roles import Actor
from controlplane.access.second_factor_rule import has_factor, must_set_up

# The name of the step in Django's session.
KEY: Final = "second_step"
# Within which a user enters the code, or sets up the factor.
STEP_S: Final = 600
CODE: Final = "code"
SET_UP: Final = "set_up"


@dataclass(frozen=True)
class WaitingUser:
    """A user whose password was right; `wanted`: the page to open after the log-in.

    `setup`: the id of the setup of a factor that this browser has started, "" for none.
    """

    user: User
    wanted: str
    setup: str = ""


def step_of(request: HttpRequest, user: User) -> str:
    """Return the step after the password: a code, the setup of a factor, or "" for none."""
    if has_factor(user):
        return CODE
    return SET_UP if must_set_up(user, is_local=is_local(request)) else ""


def hold(request: HttpRequest, user: User, wanted: str, setup: str = "") -> None:
    """Remember in the anonymous session, under another key, whose password was right."""
    request.session.flush()
    request.session[KEY] = {
        "user": user.pk,
        "backend": user.backend,
        "hash": user.get_session_auth_hash(),
        "until": timezone.now().timestamp() + STEP_S,
        "wanted": wanted,
        "setup": setup,
    }
    request.session.set_expiry(STEP_S)


def waiting_user(request: HttpRequest) -> WaitingUser | None:
    """Return the user whose password was right; None if it was too long ago or has changed."""
    held: dict[str, Any] | None = request.session.get(KEY)
    if held is None or held["until"] < timezone.now().timestamp():
        return None
    user = User.objects.filter(pk=held["user"], is_active=True).first()
    if user is None or not constant_time_compare(held["hash"], user.get_session_auth_hash()):
        return None
    user.backend = held["backend"]
    return WaitingUser(user, held["wanted"], held["setup"])


def actor_in(request: HttpRequest, user: User) -> Actor:
    """Return the actor of a log-in whose request does not have the user yet."""
    return Actor(user, client_address(request), request_id(request), is_local=is_local(request))


def finish(request: HttpRequest, waiting: WaitingUser, factor: str) -> None:
    """Begin the session of a user who has proved the second factor."""
    request.session.pop(KEY, None)
    # The entry of the log-in has it.
    waiting.user.factor = factor  # type: ignore[attr-defined]
    login(request, waiting.user)
