"""Tokens for logins by OAUTHBEARER: a client's credentials are exchanged for them (RFC 6749, 4.4).

librdkafka's own method connects to any address that a name has. So the token endpoint is asked
here, as a destination of the site.
"""

import json
import time
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urlencode

from controlplane.wire.network.destinations import address_of
from controlplane.wire.network.requests import send

MECHANISM: Final = "OAUTHBEARER"
ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
CLIENT: Final = "sasl.oauthbearer.client.id"
CLIENT_SECRET: Final = "sasl.oauthbearer.client.secret"  # noqa: S105 - no secret, but its setting
SCOPE: Final = "sasl.oauthbearer.scope"
_OWN: Final = (ENDPOINT, CLIENT, CLIENT_SECRET, SCOPE)
_MOST_BYTES: Final = 64 * 1024
_OK: Final = 200


def with_tokens(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a client of Kafka, which asks for tokens if it logs in with them."""
    if settings.get("sasl.mechanisms") != MECHANISM:
        return dict(settings)
    own = {name: settings[name] for name in _OWN if name in settings}
    others = {name: value for name, value in settings.items() if name not in _OWN}
    return {**others, "oauth_cb": partial(_token, own)}


def _token(own: Mapping[str, str], _: str) -> tuple[str, float]:
    """Return a token, and when it ends (s since the epoch).

    Raises `OSError` or `ValueError`, which the client reports as the reason of its failed login.
    """
    form = {"grant_type": "client_credentials"}
    form |= {"scope": own[SCOPE]} if SCOPE in own else {}
    login = ":".join(quote(own.get(name, ""), safe="") for name in (CLIENT, CLIENT_SECRET))
    body, url = urlencode(form).encode(), own[ENDPOINT]
    headers = [
        (b"Host", url.split("/")[2].encode()),
        (b"Authorization", b"Basic " + b64encode(login.encode())),
        (b"Content-Type", b"application/x-www-form-urlencoded"),
        (b"Content-Length", str(len(body)).encode()),
        (b"Accept", b"application/json"),
    ]
    status, answer = send("POST", url, address_of(url, is_secret=True), headers, body, _MOST_BYTES)
    if status != _OK:
        raise ConnectionError(f"the token endpoint answers with the status {status}")
    try:
        row = json.loads(answer)
        return str(row["access_token"]), time.time() + float(row["expires_in"])
    except (ValueError, TypeError, LookupError):
        raise ConnectionError("the token endpoint returns no token with its expires_in") from None
