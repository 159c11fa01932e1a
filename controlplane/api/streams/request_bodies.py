"""Request bodies with records, in one of several formats."""

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from ninja.errors import HttpError

from controlplane.records.bodies import CONTENT_TYPES, Format


def body_of(request: HttpRequest) -> bytes:
    """Return the body of a request. Raises `HttpError` (413) if it is too large."""
    try:
        return request.body
    except RequestDataTooBig as error:
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        raise HttpError(413, f"A request has at most {most:,} bytes: send less at once") from error


def format_of(request: HttpRequest) -> Format:
    """Return the format of the content type. Raises `HttpError` (415) if it is unknown."""
    kind = CONTENT_TYPES.get(request.content_type or "")
    if kind is None:
        known = ", ".join(CONTENT_TYPES)
        raise HttpError(415, f"Send one of {known}, not {request.content_type or 'nothing'}")
    return kind
