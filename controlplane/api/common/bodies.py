"""Bodies of requests: their encoding, and those that endpoints read themselves."""

from collections.abc import Callable
from http import HTTPStatus

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from ninja.errors import HttpError

from controlplane.api.common.problems import problem


def refuse_encoded_bodies(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return the middleware that refuses bodies with a content encoding, such as gzip (415)."""

    def respond(request: HttpRequest) -> HttpResponse:
        encoding = request.headers.get("Content-Encoding", "").strip()
        if encoding.lower() in ("", "identity"):
            return get_response(request)
        text = f"Send the body as it is, without Content-Encoding: {encoding[:40]}"
        status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
        response = problem(request, status, "Unsupported encoding", text, code="encoded_body")
        response["Accept-Encoding"] = "identity"
        return response

    return respond


def body_of(request: HttpRequest) -> bytes:
    """Return the body of a request. Raises `HttpError` (413) if it is too large."""
    try:
        return request.body
    except RequestDataTooBig as error:
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        raise HttpError(413, f"A request has at most {most:,} bytes: send less at once") from error
