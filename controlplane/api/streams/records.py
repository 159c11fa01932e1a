"""Endpoints that append records over HTTP, and set a cluster's log."""

from typing import Any, Final

from django.http import HttpRequest
from ninja import Query, Router, Status
from ninja.errors import HttpError
from pydantic import Field

from controlplane.access import tokens
from controlplane.access.roles import ADMIN
from controlplane.api.clusters.routes import ClusterOut
from controlplane.api.common.bodies import body_of
from controlplane.api.common.examples import BODIES
from controlplane.api.common.schemas import ReasonIn, dataclass_schema
from controlplane.api.common.security import caller, cluster_of, open_to
from controlplane.catalog.streams import stream_by_key
from controlplane.clusters import changes
from controlplane.clusters.audiences import producers
from controlplane.records import append
from controlplane.records.bodies import CONTENT_TYPES, Format, content_type_of
from controlplane.records.requests import OnBad, append_body

# A body whose format the query parameter `format` names.
ANY_BYTES: Final = "application/octet-stream"


def format_of(request: HttpRequest, named: Format | None = None) -> Format:
    """Return the format of a body: by its content type, or the named one of any bytes.

    Raises `HttpError` (415) if there is none.
    """
    content_type = request.content_type or ""
    kind = named if content_type == ANY_BYTES else CONTENT_TYPES.get(content_type)
    if kind is None:
        known = ", ".join(CONTENT_TYPES)
        text = f"Send one of {known}, or {ANY_BYTES} with the query parameter format"
        raise HttpError(415, f"{text}, not {content_type or 'nothing'}")
    return kind


router = Router(tags=["records"])


class LogIn(ReasonIn):
    """The URL of the log (empty: the site's Redis), and the limit of unread MiB."""

    url: str = Field("", max_length=300)
    limit_mb: int = Field(512, ge=1, le=1024 * 1024)


_ROW: Final = {
    "type": "object",
    "description": "a value for each column of the stream's schema, by name; see docs/producers.md",
    "additionalProperties": True,
}
_EXAMPLES: Final = {title: {"value": body} for title, body in BODIES["records"].items()}
# The `openapi_extra` of bodies with records. The other content types of records are described and
# not listed: generators of clients know JSON and bytes alone.
RECORDS_BODY: Final = {
    "requestBody": {
        "required": True,
        "description": (
            f"JSON; or {ANY_BYTES} in the format that the query parameter format names; or a body"
            f" of one of the content types {', '.join(CONTENT_TYPES)}"
        ),
        "content": {
            content_type_of(Format.JSON): {
                "schema": {
                    "type": "object",
                    "properties": {"records": {"type": "array", "items": _ROW}},
                    "required": ["records"],
                },
                "examples": _EXAMPLES,
            },
            ANY_BYTES: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
FORMAT: Any = Query(None, alias="format")  # type: ignore[type-arg]


@router.post(
    "/{slug}/streams/{stream}/records",
    response={201: dataclass_schema(append.AppendResult)},
    openapi_extra=RECORDS_BODY,
    auth=open_to(producers),
)
def append_records(
    request: HttpRequest,
    slug: str,
    stream: str,
    producer: str | None = None,
    sequence: int | None = None,
    on_bad: OnBad = OnBad.REJECT,
    zone: str = "",
    form: Format | None = FORMAT,
) -> Any:
    """Append records to a stream (by id or name): all of them or none.

    The content type names the format: JSON, lines of JSON, CSV with a header, an Arrow IPC stream,
    or Parquet; `format` names that of an application/octet-stream. Values are converted to the
    stream's schema where none is changed by it. With `on_bad=dead_letter` records that do not fit
    become dead letters, and the others are appended.
    `zone`: the IANA time zone of times that name none.

    With `producer` and a `sequence` that it uses once, a request can be repeated: what was
    appended before is answered with its position and not appended again; 409 (stamp_reused) where
    other records had the number. 429 with Retry-After when the pipeline is too far behind, 503
    when the log cannot be reached.
    """
    actor = caller(request)
    row = stream_by_key(cluster_of(request), stream)
    namespace = tokens.namespace_of(request.auth)  # type: ignore[attr-defined]
    idempotency_token = append.token_of(producer, sequence, namespace)
    body, kind = body_of(request), format_of(request, form)
    return Status(201, append_body(actor, row, body, kind, idempotency_token, on_bad, zone))


@router.post("/{slug}/log", response=ClusterOut, auth=open_to(ADMIN))
def set_log(request: HttpRequest, slug: str, body: LogIn) -> Any:
    """Set the log and its limit; the URL can change only while the cluster is stopped."""
    actor, cluster = caller(request), cluster_of(request)
    return changes.set_log(actor, cluster, body.url, body.limit_mb, body.reason)
