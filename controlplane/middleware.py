"""Middleware: request id and security headers."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from controlplane import request_ids

# No inline script and nothing from elsewhere. Styles stay open to inline ones because Plotly sizes
# its drawings with style attributes; connect-src 'self' covers the WebSocket of the same host.
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)


def with_request_id(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return the middleware that assigns each request an id, and returns it in a header."""

    def respond(request: HttpRequest) -> HttpResponse:
        identity = request_ids.chosen_id(request.headers.get(request_ids.HEADER, ""))
        request.id = identity  # type: ignore[attr-defined]
        # Not ended here: Django logs what it refused once all middleware is through.
        request_ids.begin(identity)
        response = get_response(request)
        response[request_ids.HEADER] = identity
        return response

    return respond


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return the middleware that sets Content-Security-Policy."""

    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.setdefault("Content-Security-Policy", POLICY)
        return response

    return respond
