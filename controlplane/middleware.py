"""Headers that every page carries."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

# No inline script and nothing from elsewhere. Styles stay open to inline ones because Plotly sizes
# its drawings with style attributes; connect-src 'self' covers the WebSocket of the same host.
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return the middleware that sets Content-Security-Policy."""

    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.setdefault("Content-Security-Policy", POLICY)
        return response

    return respond
