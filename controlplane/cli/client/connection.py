"""The connection to a Weir: to one elsewhere with a token, or to that of this installation.

An operation of this installation is called as a server calls it. The user at the terminal is
authenticated already, so neither token nor CSRF token are checked; roles are. It is what helps
where no server runs, or nobody can log in any more.

The OpenAPI document that commands are made of is kept in the user's cache: that of this
installation until a file of it changes, that of a Weir elsewhere for an hour.
"""

import getpass
import hashlib
import inspect
import json
import os
import ssl
import stat
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from io import BytesIO
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import httpx
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.handlers.asgi import ASGIRequest
from django.urls import resolve

from controlplane.access.roles import CONFIRMED_AT, Actor
from controlplane.cli.client.api import Api
from controlplane.cli.codes import CliError, ExitCode
from controlplane.installation import env
from controlplane.wire.redaction import without_password

_CONNECT_S: Final = 5.0


def api_of(given: Namespace) -> Api:
    """Return the API that a call names: that at --url, else that of this installation.

    Raises `CliError` for a user, URL, token or CA file that is not usable.
    """
    return Api(_elsewhere(given) if given.url else _here(given))


def _here(given: Namespace) -> httpx.Client:
    # A client of another Weir sets up no Django.
    from controlplane.cli.client.connection import ThisProcess, actor_of  # noqa: PLC0415

    return httpx.Client(base_url="http://localhost", transport=ThisProcess(actor_of(given)))


def _elsewhere(given: Namespace) -> httpx.Client:
    if given.acting_user:
        what = "--as names a user of this machine's Weir; elsewhere the token identifies the user"
        raise CliError(ExitCode.WRONG, what, advice="omit --as, or omit --url and unset WEIR_URL")
    url = _url(given.url.rstrip("/"))
    if url.scheme != "https" and not (url.scheme == "http" and _is_loopback(url.host)):
        what = f"--url {without_password(given.url)}: the token would be sent without encryption"
        raise CliError(
            ExitCode.WRONG, what, advice="use https://; http:// is for this machine only"
        )
    headers = {"Authorization": f"Bearer {_token(given)}", "Accept": "application/json"}
    timeout = httpx.Timeout(env.integer("WEIR_TIMEOUT_S", 60, 1, 3600), connect=_CONNECT_S)
    return httpx.Client(base_url=url, headers=headers, verify=_tls(given), timeout=timeout)


def _url(text: str) -> httpx.URL:
    with suppress(httpx.InvalidURL):
        url = httpx.URL(text)
        if url.scheme in ("http", "https") and url.host:
            return url
    what = f"--url or WEIR_URL: {without_password(text)!r} is not an address of a Weir"
    raise CliError(ExitCode.WRONG, what, advice="give it as https://weir.example.org")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls(given: Namespace) -> ssl.SSLContext:
    file = given.ca_file or env.text("WEIR_CA_FILE")
    try:
        return _context(file)
    except (OSError, ssl.SSLError) as error:
        what = f"--ca-file {file}: {error}"
        raise CliError(ExitCode.WRONG, what, advice="name a file with PEM certificates") from None


@cache
def _context(file: str) -> ssl.SSLContext:
    """Return the context with the certificates of a file, "": those of the system."""
    return ssl.create_default_context(cafile=file or None)


def _token(given: Namespace) -> str:
    """Return the token: of --token-file or WEIR_TOKEN_FILE, else WEIR_TOKEN. Raises `CliError`."""
    file = given.token_file or env.text("WEIR_TOKEN_FILE")
    token = _token_in(Path(file)) if file else env.text("WEIR_TOKEN")
    if not token.isascii() or not token.isprintable() or not token:
        what = "there is no usable token for the Weir at --url"
        advice = "--token-file FILE (mode 600), or the environment variable WEIR_TOKEN"
        raise CliError(ExitCode.FORBIDDEN, what, advice=advice)
    return token


def _token_in(file: Path) -> str:
    if file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        what = f"{file}: other users of this machine can read or change it"
        raise CliError(ExitCode.FORBIDDEN, what, advice=f"chmod 600 {file}; then replace the token")
    return file.read_text(encoding="utf-8", errors="replace").strip()


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


_FRESH_S: Final = 3600
_CODE: Final = Path(__file__).parents[2]
Document = Mapping[str, Any]


def document_for(given: Namespace, set_up: Callable[[], None]) -> Document:
    """Return the document for a call; `set_up` prepares Django. Raises `Refused`."""
    if given.url:
        return _kept(given.url, time.time() - _FRESH_S, lambda: _fetched(given))
    changed_at = max(file.stat().st_mtime for file in _CODE.rglob("*.py"))
    return _kept(str(_CODE), changed_at, lambda: _made(set_up))


def _fetched(given: Namespace) -> Document:
    # --help and completion from the cache need no client.
    from controlplane.cli.client.connection import api_of  # noqa: PLC0415

    document: Document = api_of(given).get("/openapi.json")
    return document


def _made(set_up: Callable[[], None]) -> Document:
    set_up()
    # The API needs Django, which --help does without where the document is in the cache.
    from controlplane.api.application import api  # noqa: PLC0415

    return api.get_openapi_schema(path_prefix="/api/v1/")


def _kept(source: str, since: float, make: Callable[[], Document]) -> Document:
    """Return the document of a source that was kept after a time, else a new one, and keep it."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weir"
    file = folder / f"{hashlib.blake2b(source.encode(), digest_size=16).hexdigest()}.json"
    with suppress(OSError, ValueError):
        if file.stat().st_mtime > since:
            kept: Document = json.loads(file.read_text(encoding="utf-8"))
            return kept
    text = json.dumps(make(), default=str)
    # A cache that cannot be written costs time only.
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text(text, encoding="utf-8")
        new.replace(file)
    fresh: Document = json.loads(text)
    return fresh
