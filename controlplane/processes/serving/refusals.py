"""Responses to requests beyond a bound, without a thread: problem details, a page, or a line."""

import html
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from controlplane.processes.runtime.request_bounds import AGAIN_S

_LATER: Final = (429, 503)


@dataclass(slots=True)
class Refusal(Exception):
    """A request that exceeds a bound: HTTP status, code, and a sentence for people."""

    status: int
    code: str
    text: str


async def send_refusal(
    scope: Mapping[str, Any],
    send: Callable[[Mapping[str, Any]], Awaitable[None]],
    refusal: Refusal,
) -> None:
    """Send the response; the connection ends with it."""
    title = HTTPStatus(refusal.status).phrase
    if scope["path"].startswith("/api/"):
        kind = b"application/problem+json"
        body = json.dumps({
            "type": f"urn:weir:problem:{refusal.code}", "title": title,
            "status": refusal.status, "detail": refusal.text,
            "instance": scope["path"][:2000], "request": "", "code": refusal.code,
            "fields": {}, "rows": {}, "data": {},
        })  # fmt: skip
    elif any(key == b"accept" and b"text/html" in value for key, value in scope["headers"]):
        kind = b"text/html; charset=utf-8"
        body = (
            f'<!doctype html><html lang="en"><title>{title}</title><main><h1>{title}</h1>'
            f'<p role="alert">{html.escape(refusal.text)}.</p></main></html>'
        )
    else:
        kind, body = b"text/plain; charset=utf-8", refusal.text
    content = body.encode()
    headers = [
        (b"content-type", kind),
        (b"content-length", b"%d" % len(content)),
        (b"cache-control", b"no-store, private"),
        (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
        # What the client still sends would be read as the next request.
        (b"connection", b"close"),
    ]
    if refusal.status in _LATER:
        headers.append((b"retry-after", b"%d" % AGAIN_S))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
