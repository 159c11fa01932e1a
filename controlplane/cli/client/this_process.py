"""Requests to the API of this installation: an operation is called as a server calls it.

The user at the terminal is authenticated already, so neither token nor CSRF token are checked;
roles are. It is what helps where no server runs, or nobody can log in any more.
"""

import getpass
import inspect
import time
from argparse import Namespace
from io import BytesIO
from typing import Any

import httpx
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.handlers.asgi import ASGIRequest
from django.urls import resolve

from controlplane.access.roles import CONFIRMED_AT, Actor
from controlplane.cli.codes import CliError, ExitCode
from controlplane.installation import env

# The user runs a command on the machine of Weir.
_ADDRESS = ("127.0.0.1", 0)


class ThisProcess(httpx.BaseTransport):
    """A transport whose server is this process."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response of the operation. Raises what the operation does not translate."""
        called = self._request(request, request.read())
        match = called.resolver_match = resolve(called.path_info, "controlplane.api.urls")
        response = match.func(called, *match.args, **match.kwargs)
        if inspect.isawaitable(response):
            response = async_to_sync(_awaited)(response)
        content = b"".join(response) if response.streaming else response.content
        return httpx.Response(response.status_code, headers=dict(response.items()), content=content)

    def _request(self, request: httpx.Request, body: bytes) -> ASGIRequest:
        called = ASGIRequest(
            {
                "type": "http", "method": request.method, "path": request.url.path,
                "query_string": request.url.query, "client": _ADDRESS, "server": ("localhost", 80),
                "headers": [(b"content-type", request.headers["Content-Type"].encode()),
                            (b"content-length", str(len(body)).encode()),
                            (b"host", b"localhost")],
            },
            BytesIO(body),
        )  # fmt: skip
        attributes: dict[str, Any] = {
            "user": self.actor.user, "id": self.actor.request, "_dont_enforce_csrf_checks": True,
            # Who may use the machine may change any row.
            "session": {CONFIRMED_AT: time.time()},
            # The size of a body is limited for clients, and not for the machine of Weir.
            "_body": body,
        }  # fmt: skip
        vars(called).update(attributes)
        return called


async def _awaited(response: Any) -> Any:
    return await response


def actor_of(given: Namespace) -> Actor:
    """Return the actor: --as, else WEIR_USER, else the login name. Raises `CliError`.

    The audit log also gets the login name, which nobody chooses on the command line.
    """
    login = _login()
    name = given.acting_user or env.text("WEIR_USER") or login
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        text = f"there is no active user {name} in Weir"
        advice = "--as USER or WEIR_USER=USER; weir manage createsuperuser makes one"
        raise CliError(ExitCode.FORBIDDEN, text, advice=advice)
    return Actor(user, request=f"weir by {login}"[:40], is_local=True)


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A container's user need not have a name.
        return ""
