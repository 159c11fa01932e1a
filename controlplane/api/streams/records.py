"""Endpoints that append records over HTTP, and set a cluster's log."""

from typing import Any, Final

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from ninja import Router, Schema, Status
from ninja.errors import HttpError
from pydantic import Field

from controlplane.api.clusters.routes import ClusterOut
from controlplane.api.common.schemas import ReasonIn
from controlplane.api.common.security import caller, cluster_of
from controlplane.catalog.streams import stream_by_key
from controlplane.clusters import changes
from controlplane.records import append
from controlplane.records.bodies import CONTENT_TYPES, Format, content_type_of
from controlplane.records.requests import OnBad, append_body


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


router = Router(tags=["records"])


class AppendedOut(Schema):
    """The log position of the appended records ("" for none), and their number.

    dead_letters: how many others did not fit the stream's schema and are kept as dead letters.
    """

    position: str
    records: int
    dead_letters: int


class LogIn(ReasonIn):
    """The URL of the log (empty: the site's Redis), and the limit of unread MiB."""

    url: str = Field("", max_length=300)
    limit_mb: int = Field(512, ge=1, le=1024 * 1024)


_ROW: Final = {
    "type": "object",
    "description": "a value for each column of the stream's schema, by name; see docs/producers.md",
    "additionalProperties": True,
}
_BINARY: Final = {"schema": {"type": "string", "format": "binary"}}
_TEXT: Final = {"schema": {"type": "string"}}
_SHAPES: Final = {
    Format.JSON: {
        "schema": {
            "type": "object",
            "properties": {"records": {"type": "array", "items": _ROW}},
        }
    },
    Format.NDJSON: _TEXT,
    Format.CSV: _TEXT,
    Format.ARROW: _BINARY,
    Format.PARQUET: _BINARY,
}
_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {content_type_of(kind): shape for kind, shape in _SHAPES.items()},
    }
}


@router.post("/{slug}/streams/{stream}/records", response={201: AppendedOut}, openapi_extra=_BODY)
def append_records(
    request: HttpRequest,
    slug: str,
    stream: str,
    producer: str | None = None,
    sequence: int | None = None,
    on_bad: OnBad = OnBad.REJECT,
    zone: str = "",
) -> Any:
    """Append records to a stream (by id or name): all of them or none.

    The content type names the format: JSON, lines of JSON, CSV with a header, an Arrow IPC stream,
    or Parquet. Values are converted to the stream's schema where none is changed by it. With
    `on_bad=dead_letter` records that do not fit become dead letters, and the others are appended.
    `zone`: the IANA time zone of times that name none.

    With `producer` and a `sequence` that it uses once, a request can be repeated: what was
    appended before is answered with its position and not appended again; 409 (stamp_reused) where
    other records had the number. 429 with Retry-After when the pipeline is too far behind, 503
    when the log cannot be reached.
    """
    actor = caller(request)
    row = stream_by_key(cluster_of(request), stream)
    idempotency_token = append.token_of(producer, sequence)
    body, kind = body_of(request), format_of(request)
    return Status(201, append_body(actor, row, body, kind, idempotency_token, on_bad, zone))


@router.post("/{slug}/log", response=ClusterOut)
def set_log(request: HttpRequest, slug: str, body: LogIn) -> Any:
    """Set the log and its limit; the URL can change only while the cluster is stopped."""
    actor, cluster = caller(request), cluster_of(request)
    return changes.set_log(actor, cluster, body.url, body.limit_mb, body.reason)
