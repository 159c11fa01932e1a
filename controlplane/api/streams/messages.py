"""Endpoints of the records of a source: read some, write a message of a topic."""

from typing import Any

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from controlplane.api.common.examples import with_examples
from controlplane.api.common.schemas import RequestBody, fields_of
from controlplane.api.common.security import caller, cluster_of
from controlplane.catalog.streams import stream_by_key
from controlplane.explain.drafts.messages import MOST, BrowseChoice, browse
from controlplane.explain.drafts.values import BrowsedSource
from controlplane.topology.topics.produce import MOST_BYTES, ProducedMessage, produce

router = Router(tags=["streams"])
_BROWSE = with_examples({"Filtered": {"where": "country = 'DE'", "limit": 20}})
_PRODUCE = with_examples({"Message": {"key": "c-1", "value": '{"country": "DE"}'}})


class BrowseIn(RequestBody):
    """Which records are read: the newest, or from an offset of a partition, or from a time.

    topic: one of a pattern; where: a condition over the columns of the stream, as of a query;
    since: ISO 8601 with a zone.
    """

    where: str = Field("", max_length=2_000)
    partition: int | None = None
    offset: int | None = None
    since: str = Field("", max_length=60)
    limit: int = Field(50, ge=1, le=MOST)
    topic: str = Field("", max_length=249)


class BrowsedSourceOut(fields_of(BrowsedSource, without="sample")):  # type: ignore[misc]
    """Records, newest first; read: how many were looked at; matching: how many of them match."""


class ProduceIn(RequestBody):
    """A message; value: JSON that is written in the format of the topic, or its text."""

    value: str = Field(max_length=MOST_BYTES)
    key: str = Field("", max_length=1_000)
    partition: int | None = None


class ProducedMessageOut(fields_of(ProducedMessage)):  # type: ignore[misc]
    """Where the message was written."""


@router.post("/{slug}/streams/{stream}/messages", response=BrowsedSourceOut, openapi_extra=_BROWSE)
def browse_messages(request: HttpRequest, slug: str, stream: str, body: BrowseIn) -> Any:
    """Return records of the source of a stream; no offset of the stream moves."""
    row = stream_by_key(cluster_of(request), stream)
    return browse(caller(request), row, BrowseChoice(**body.model_dump()))


@router.post(
    "/{slug}/streams/{stream}/produce", response=ProducedMessageOut, openapi_extra=_PRODUCE
)
def produce_message(request: HttpRequest, slug: str, stream: str, body: ProduceIn) -> Any:
    """Write one message to the topic of a stream, by the role that its source names in produce."""
    row = stream_by_key(cluster_of(request), stream)
    return produce(caller(request), row, **body.model_dump())
