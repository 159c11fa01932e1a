"""The user of a valid session or token, by the headers of a request, before its body is read."""

from collections.abc import Sequence
from importlib import import_module

from django.conf import settings
from django.db import OperationalError, close_old_connections
from django.http.cookie import parse_cookie

from controlplane.access.logins.login_sessions import KEY, session_of
from controlplane.access.tokens import user_of_valid

Headers = Sequence[tuple[bytes, bytes]]


def user_of(headers: Headers) -> str:
    """Return the user of a valid token or an open login session in the headers, "" without.

    It only decides about bounds: the view authenticates, and records what is wrong.
    """
    close_old_connections()
    try:
        return _user_of(headers)
    except OperationalError:
        # The view answers 503.
        return "unknown"
    finally:
        close_old_connections()


def _user_of(headers: Headers) -> str:
    users = []
    for name, value in headers:
        if name == b"authorization":
            kind, _, token = value.decode("latin-1").partition(" ")
            user = user_of_valid(token.strip()) if kind.lower() == "bearer" else None
            return f"user {user}" if user else ""
        if name == b"cookie":
            cookies = parse_cookie(value.decode("latin-1"))
            users.append(_of_session(cookies.get(settings.SESSION_COOKIE_NAME, "")))
    return next(filter(None, users), "")


def _of_session(key: str) -> str:
    if not key:
        return ""
    session = import_module(settings.SESSION_ENGINE).SessionStore(session_key=key)
    row = session_of(str(session.get(KEY, "")))
    return f"user {row.user_id}" if row else ""
