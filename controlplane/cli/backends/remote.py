"""The API of a Weir elsewhere, over HTTP, with a token.

Reads are retried after a lost connection and after 429, 502, 503 and 504. A POST is retried after a
lost connection only, with the same Idempotency-Key, so it has one effect. PUT, PATCH and DELETE are
not retried.
"""

import ssl
import stat
import time
import uuid
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import httpx

from controlplane import env
from controlplane.cli.backends.interface import ROOT, Answer, Api, Call
from controlplane.cli.codes import Code, Refused
from controlplane.wire.redaction import without_password

_TRIES: Final = 4
# The longest pause that a Retry-After can request, in seconds.
_LONGEST_S: Final = 30.0
_RETRIED: Final = frozenset({429, 502, 503, 504})
_CONNECT_S: Final = 5.0


class RemoteApi(Api):
    """The API at a URL, called with a token."""

    def __init__(self, client: httpx.Client, pause: Callable[[float], None] = time.sleep) -> None:
        self.client = client
        self.pause = pause

    def send(self, call: Call) -> Answer:
        """Return the response. Raises `Refused` if none arrives."""
        key = {"Idempotency-Key": uuid.uuid4().hex} if call.method == "POST" else {}
        for number in range(1, _TRIES + 1):
            is_last = number == _TRIES
            try:
                response = self.client.request(
                    call.method, ROOT + call.path, content=call.body,
                    headers={"Content-Type": call.content_type, **key},
                )  # fmt: skip
            except httpx.TransportError as error:
                if is_last or not (call.is_read or key) or _is_permanent(error):
                    raise self._unreachable(error) from None
                self.pause(_pause(number, ""))
                continue
            if is_last or not call.is_read or response.status_code not in _RETRIED:
                break
            self.pause(_pause(number, response.headers.get("Retry-After", "")))
        kind = response.headers.get("Content-Type", "")
        return Answer(response.status_code, response.text, kind, dict(response.headers))

    def _unreachable(self, error: httpx.TransportError) -> Refused:
        kind = type(error).__name__
        what = f"the Weir at {without_password(str(self.client.base_url))} does not respond"
        if _is_permanent(error):
            advice = "check the certificate; --ca-file names the authority that signed it"
            return Refused(Code.FORBIDDEN, what, [f"{kind}: {error}"], advice)
        return Refused(Code.AWAY, what, [f"{kind}: {error}"], "check --url, and that it runs")


def _is_permanent(error: Exception) -> bool:
    """Return True if the certificate is wrong: another try does not help."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _pause(number: int, retry_after: str) -> float:
    """Return the seconds before the next try: what the server requests, else 0.5 s doubling."""
    requested = float(retry_after) if retry_after.isdigit() else 0.25 * 2.0**number
    return min(_LONGEST_S, requested)


def remote_api(given: Namespace) -> RemoteApi:
    """Return the API at --url. Raises `Refused` for a URL, token or CA file that is not usable."""
    if given.acting_user:
        what = "--as names a user of this machine's Weir; elsewhere the token identifies the user"
        raise Refused(Code.WRONG, what, advice="omit --as, or omit --url and unset WEIR_URL")
    url = _url(given.url.rstrip("/"))
    if url.scheme != "https" and not (url.scheme == "http" and _is_loopback(url.host)):
        what = f"--url {without_password(given.url)}: the token would be sent without encryption"
        raise Refused(Code.WRONG, what, advice="use https://; http:// is for this machine only")
    headers = {"Authorization": f"Bearer {_token(given)}", "Accept": "application/json"}
    timeout = httpx.Timeout(env.integer("WEIR_TIMEOUT_S", 60, 1, 3600), connect=_CONNECT_S)
    client = httpx.Client(base_url=url, headers=headers, verify=_tls(given), timeout=timeout)
    return RemoteApi(client)


def _url(text: str) -> httpx.URL:
    with suppress(httpx.InvalidURL):
        url = httpx.URL(text)
        if url.scheme in ("http", "https") and url.host:
            return url
    what = f"--url or WEIR_URL: {without_password(text)!r} is no address of a Weir"
    raise Refused(Code.WRONG, what, advice="give it as https://weir.example.org")


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
        raise Refused(Code.WRONG, what, advice="name a file with PEM certificates") from None


@cache
def _context(file: str) -> ssl.SSLContext:
    """Return the context with the certificates of a file, "": those of the system."""
    return ssl.create_default_context(cafile=file or None)


def _token(given: Namespace) -> str:
    """Return the token: of --token-file or WEIR_TOKEN_FILE, else WEIR_TOKEN. Raises `Refused`."""
    file = given.token_file or env.text("WEIR_TOKEN_FILE")
    token = _token_in(Path(file)) if file else env.text("WEIR_TOKEN")
    if not token.isascii() or not token.isprintable() or not token:
        what = "there is no usable token for the Weir at --url"
        advice = "--token-file FILE (mode 600), or the environment variable WEIR_TOKEN"
        raise Refused(Code.FORBIDDEN, what, advice=advice)
    return token


def _token_in(file: Path) -> str:
    if file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        what = f"{file}: other users of this machine can read or change it"
        raise Refused(Code.FORBIDDEN, what, advice=f"chmod 600 {file}; then replace the token")
    return file.read_text(encoding="utf-8", errors="replace").strip()
