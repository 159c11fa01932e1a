"""The door for records: JSON or Arrow over HTTP, for whoever has no client of the log."""

import json
from typing import Any, Final

import pyarrow as pa
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from ninja import Router, Schema, Status
from ninja.errors import HttpError
from pydantic import Field

from controlplane.api.schemas import ClusterOut, ReasonIn
from controlplane.api.security import caller
from controlplane.selectors.clusters import cluster_by_slug
from controlplane.selectors.streams import stream_by_key
from controlplane.services import cluster_log, record_rows, records
from controlplane.wire.schema import StreamSchema

router = Router(tags=["records"])
JSON: Final = "application/json"
ARROW: Final = "application/vnd.apache.arrow.stream"


class AppendedOut(Schema):
    """Where in the log the records stand, and how many they are."""

    position: str
    records: int


class LogIn(ReasonIn):
    """Where records are kept (empty: the site's Redis), and the MiB that may wait to be read."""

    url: str = Field("", max_length=300)
    limit_mb: int = Field(512, ge=1, le=1024 * 1024)


_ROW: Final = {
    "type": "object",
    "description": "a value for each column of the stream's schema; a time is milliseconds since "
    "1970 or a text with a zone",
    "additionalProperties": True,
}
_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {
                "schema": {
                    "type": "object",
                    "properties": {"records": {"type": "array", "items": _ROW}},
                }
            },
            ARROW: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


@router.post("/{slug}/streams/{stream}/records", response={201: AppendedOut}, openapi_extra=_BODY)
def append_records(
    request: HttpRequest,
    slug: str,
    stream: str,
    producer: str | None = None,
    sequence: int | None = None,
) -> Any:
    """Append records to a stream (by id or name): all of them or none.

    With `producer` and a `sequence` that it uses once, a request can be repeated: what was
    appended before is answered with its position and not appended again; 409 (stamp_reused) where
    other records had the number. 429 with Retry-After
    when the pipeline is too far behind, 503 when the log cannot be reached.
    """
    actor = caller(request)
    found = stream_by_key(cluster_by_slug(slug), stream)
    stamp = records.stamp_of(producer, sequence)
    batch = _batch(request, records.schema_of_stream(found))
    return Status(201, records.append(actor, found, batch, stamp))


@router.post("/{slug}/log", response=ClusterOut)
def set_log(request: HttpRequest, slug: str, body: LogIn) -> Any:
    """Say where records are kept, and how much may wait; another URL only while it is stopped."""
    cluster = cluster_by_slug(slug)
    return cluster_log.set_log(caller(request), cluster, body.url, body.limit_mb, body.reason)


def _batch(request: HttpRequest, schema: StreamSchema) -> pa.RecordBatch:
    body = _body(request)
    if request.content_type == ARROW:
        return record_rows.batch_of_arrow(body, schema)
    if request.content_type != JSON:
        raise HttpError(415, f"Send {JSON} or {ARROW}, not {request.content_type or 'nothing'}")
    try:
        return record_rows.batch_of_rows(json.loads(body), schema)
    except (ValueError, RecursionError) as error:
        raise HttpError(400, f"The body is no JSON: {error}") from error


def _body(request: HttpRequest) -> bytes:
    try:
        return request.body
    except RequestDataTooBig as error:
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        raise HttpError(413, f"A request has at most {most:,} bytes: send less at once") from error
