"""The API of this process: an operation is called as a server calls it, without HTTP.

The user at the terminal is authenticated already, so neither token nor CSRF token are checked;
roles are.
"""

import inspect
import time
from argparse import Namespace
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from asgiref.sync import async_to_sync
from django.core.handlers.asgi import ASGIRequest
from django.http.response import HttpResponseBase
from django.urls import resolve

from controlplane.access.roles import CONFIRMED_AT, Actor
from controlplane.cli.actors import actor_of
from controlplane.cli.backends.interface import ROOT, Answer, Api, Call

# The user runs a command on the machine of Weir.
_ADDRESS = ("127.0.0.1", 0)


class LocalApi(Api):
    """The API of this process, called by a user at the terminal."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor

    def send(self, call: Call) -> Answer:
        """Return the response of the operation. Raises what the operation does not translate."""
        path, _, query = call.path.partition("?")
        request = ASGIRequest(
            {
                "type": "http", "method": call.method, "path": ROOT + unquote(path),
                "query_string": query.encode(), "client": _ADDRESS, "server": ("localhost", 80),
                "headers": [(b"content-type", call.content_type.encode()),
                            (b"content-length", str(len(call.body)).encode()),
                            (b"host", b"localhost")],
            },
            BytesIO(call.body),
        )  # fmt: skip
        attributes: dict[str, Any] = {
            "user": self.actor.user, "id": self.actor.request, "_dont_enforce_csrf_checks": True,
            # Who may use the machine may change any row.
            "session": {CONFIRMED_AT: time.time()},
        }  # fmt: skip
        # The size of a body is limited for clients, and not for the machine of Weir.
        vars(request).update(attributes | {"_body": call.body})
        match = request.resolver_match = resolve(request.path_info, "controlplane.api.urls")
        response = match.func(request, *match.args, **match.kwargs)
        return _answer(async_to_sync(_awaited)(response) if inspect.isawaitable(response)
                       else response)  # fmt: skip


async def _awaited(response: Any) -> Any:
    return await response


def _answer(response: HttpResponseBase) -> Answer:
    content = b"".join(response) if response.streaming else response.content  # type: ignore[attr-defined]
    kind = response.get("Content-Type", "")
    return Answer(response.status_code, content.decode(), kind, dict(response.items()))


def local_api(given: Namespace) -> LocalApi:
    """Return the API of this process for the acting user. Raises `Refused`."""
    return LocalApi(actor_of(given))
