"""Middleware: request id and security headers."""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse

from controlplane.access import request_ids
from controlplane.events import traces

# Requests with these methods change nothing.
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
# The texts of the two style elements that plotly.min.js creates, which are known: an empty one, to
# which it adds rules by script, and the rules of its maps. The tests in a browser fail if another
# version of Plotly creates others. It also sets empty style attributes, at colour bars: the hash of
# nothing allows them, and 'unsafe-hashes' makes hashes count for attributes.
_PLOTLY_STYLES = (
    "'unsafe-hashes' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' "
    "'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='"
)
# No inline script or other inline style, and nothing from elsewhere. connect-src 'self' covers the
# WebSocket of the same host.
POLICY = (
    f"default-src 'self'; script-src 'self'; style-src 'self' {_PLOTLY_STYLES}; "
    "img-src 'self' data: blob:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
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
        answer = get_response if request.method in _SAFE else _traced(get_response)
        response = answer(request)
        response[request_ids.HEADER] = identity
        return response

    return respond


def _traced(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return what answers a request in a span, of the caller's trace if it names one."""

    def respond(request: HttpRequest) -> HttpResponse:
        method = str(request.method)
        with traces.start_span(method, request.headers.get(traces.HEADER, "")) as request_span:
            response = get_response(request)
            if request_span is not None:
                route = getattr(request.resolver_match, "route", "")
                request_span.update_name(f"{method} /{route}")
                request_span.set_attributes({
                    "http.request.method": method, "http.route": f"/{route}",
                    "http.response.status_code": response.status_code,
                    "weir.request_id": request_ids.request_id(request),
                })  # fmt: skip
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
