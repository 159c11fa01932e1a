"""The connection to a Weir: to one elsewhere with a token, or to that of this installation."""

import ssl
import stat
from argparse import Namespace
from contextlib import suppress
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import httpx

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
    from controlplane.cli.client.this_process import ThisProcess, actor_of  # noqa: PLC0415

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
