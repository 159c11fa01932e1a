"""Endpoints of administrators about the log-ins of other users: sessions and second factors."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema, Status

from controlplane.access.logins import login_sessions, second_factor
from controlplane.access.roles import ADMIN
from controlplane.api.common.schemas import Reason, ReasonIn
from controlplane.api.common.security import caller, open_to

router = Router(tags=["access"], auth=open_to(ADMIN))


class EndedSessionsOut(Schema):
    """The number of sessions that ended."""

    ended: int


@router.post("/{user}/end-sessions", response=EndedSessionsOut)
def end_sessions(request: HttpRequest, user: str, body: ReasonIn) -> Any:
    """End all sessions of a user, with their sockets; tokens stay valid. Requires the role admin.

    The role is that on all clusters.
    """
    return {"ended": login_sessions.end_all_of(caller(request), user, body.reason)}


@router.delete("/{user}/second-factor", response={204: None})
def remove_second_factor(request: HttpRequest, user: str, reason: Reason = "") -> Any:
    """Remove the second factor of a user who lost it, and end the user's sessions.

    Requires the role admin on all clusters, and a session in which the user has confirmed to be
    present (401 confirmation_needed). 409 (no_second_factor) if the user has none.
    """
    second_factor.remove_of(caller(request), user, reason)
    return Status(204, None)
