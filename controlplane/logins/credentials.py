"""Whether a request has a valid session or token, by its headers, before its body is read."""

from collections.abc import Sequence
from importlib import import_module

from django.conf import settings
from django.db import OperationalError
from django.http.cookie import parse_cookie

from controlplane.access.tokens import is_valid
from controlplane.logins.login_sessions import KEY, session_of

Headers = Sequence[tuple[bytes, bytes]]


def has_credentials(headers: Headers) -> bool:
    """Return True if a valid token or an open login session is in the headers.

    It only decides how much is read: the view authenticates, and records what is wrong.
    """
    try:
        return _has_credentials(headers)
    except OperationalError:
        # The view answers 503.
        return True


def _has_credentials(headers: Headers) -> bool:
    for name, value in headers:
        if name == b"authorization":
            kind, _, token = value.decode("latin-1").partition(" ")
            return kind.lower() == "bearer" and is_valid(token.strip())
    return any(
        _is_open(parse_cookie(value.decode("latin-1")).get(settings.SESSION_COOKIE_NAME, ""))
        for name, value in headers
        if name == b"cookie"
    )


def _is_open(key: str) -> bool:
    if not key:
        return False
    session = import_module(settings.SESSION_ENGINE).SessionStore(session_key=key)
    return session_of(str(session.get(KEY, ""))) is not None
