"""Streams: registering and listing them."""

from typing import Any

from django.db.models import prefetch_related_objects
from django.http import HttpRequest
from ninja import Router

from controlplane.api.schemas import StreamIn, StreamOut, StreamPage, StreamsIn
from controlplane.api.security import caller
from controlplane.selectors.clusters import cluster_by_slug
from controlplane.selectors.streams import StreamFilters, StreamRow, stream_by_id, streams_page
from controlplane.services import streams
from controlplane.services.streams import StreamSpec

router = Router(tags=["streams"])


@router.get("/{slug}/streams", response=StreamPage)
def list_streams(request: HttpRequest, slug: str) -> Any:
    """Return one page; query parameters q, split, order, page, per_page (up to 1000)."""
    caller(request)
    page = streams_page(cluster_by_slug(slug), StreamFilters.of(request.GET))
    return StreamPage(
        total=page.total,
        page=page.number,
        pages=page.pages,
        streams=[StreamOut.of(row) for row in page.rows],
    )


@router.get("/{slug}/streams/{int:pk}", response=StreamOut)
def get_stream(request: HttpRequest, slug: str, pk: int) -> Any:
    """Return one stream by its id."""
    caller(request)
    return StreamOut.of(stream_by_id(cluster_by_slug(slug), pk))


@router.post("/{slug}/streams", response=list[StreamOut])
def register_streams(request: HttpRequest, slug: str, body: StreamsIn) -> Any:
    """Register streams together; known names are brought up to date."""
    actor, cluster = caller(request), cluster_by_slug(slug)
    saved = streams.register(actor, cluster, [_spec(row) for row in body.streams])
    prefetch_related_objects(saved, "drops__stream", "drops__query")
    return [StreamOut.of(StreamRow(stream, 0)) for stream in saved]


def _spec(row: StreamIn) -> StreamSpec:
    return StreamSpec(row.name, row.title, row.data_schema, row.declared_rate, row.meta)
