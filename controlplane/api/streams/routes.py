"""Endpoints of streams: registration, lists and deletion."""

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from controlplane.api.common.lists import list_parameters, listed
from controlplane.api.common.schemas import Reason
from controlplane.api.common.security import caller, cluster_of
from controlplane.api.streams.schemas import StreamOut, StreamPage, StreamsIn
from controlplane.catalog.streams import (
    StreamFilters,
    rows_of_streams,
    stream_by_key,
    streams_listing,
)
from controlplane.cluster_spec.apply_resources import stream_spec
from controlplane.topology import streams

Confirmation = Annotated[str, Query(max_length=100)]
router = Router(tags=["streams"])


@router.get("/{slug}/streams", response=StreamPage, openapi_extra=list_parameters(StreamFilters))
def list_streams(request: HttpRequest, response: HttpResponse, slug: str) -> Any:
    """List streams by name.

    Query parameters q, split, order (name, rate, -rate, queries, -queries, split), cursor, limit
    (up to 1000).
    """
    cluster, filters = cluster_of(request), StreamFilters.of(request.GET)
    listing = streams_listing(cluster, filters)
    return StreamPage(**listed(request, response, listing, "streams", StreamOut.of))


@router.get("/{slug}/streams/{stream}", response=StreamOut)
def get_stream(request: HttpRequest, slug: str, stream: str) -> Any:
    """Return one stream (by id or name)."""
    row = stream_by_key(cluster_of(request), stream)
    return StreamOut.of(rows_of_streams([row])[0])


@router.post("/{slug}/streams", response=list[StreamOut])
def register_streams(request: HttpRequest, slug: str, body: StreamsIn) -> Any:
    """Register streams together; existing ones are updated.

    A new stream needs a schema. That of a known one changes under the rules of PUT …/schema.
    """
    actor, cluster = caller(request), cluster_of(request)
    saved = streams.register(actor, cluster, [stream_spec(row) for row in body.streams])
    return [StreamOut.of(row) for row in rows_of_streams(saved)]


@router.delete("/{slug}/streams/{stream}", response={204: None})
def delete_stream(
    request: HttpRequest, slug: str, stream: str, confirm: Confirmation, reason: Reason = ""
) -> Any:
    """Delete a stream with its records. Requires the role operator.

    `confirm` repeats its name. 409 (has_readers) while a query that has not ended reads it,
    409 (has_writers) while a sink writes to it.
    """
    actor = caller(request)
    streams.delete(actor, stream_by_key(cluster_of(request), stream), confirm, reason)
    return Status(204, None)
