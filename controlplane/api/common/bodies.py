"""Bodies of requests that endpoints read themselves."""

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from ninja.errors import HttpError


def body_of(request: HttpRequest) -> bytes:
    """Return the body of a request. Raises `HttpError` (413) if it is too large."""
    try:
        return request.body
    except RequestDataTooBig as error:
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        raise HttpError(413, f"A request has at most {most:,} bytes: send less at once") from error
