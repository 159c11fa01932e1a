"""Endpoints of topics that are read in place: the brokers' list, a sample, how far one is read."""

from typing import Any

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from controlplane.api.common.examples import with_examples
from controlplane.api.common.schemas import RequestBody, dataclass_schema, fields_of
from controlplane.api.common.security import caller, cluster_of
from controlplane.api.streams.schemas import SourceBody
from controlplane.catalog.streams import stream_by_key
from controlplane.errors import NotFound
from controlplane.explain.drafts.messages import SourceSample, sample
from controlplane.telemetry.sources import SourceStatus, source_status
from controlplane.topology.topics.brokers import ListedTopic, list_topics

router = Router(tags=["streams"])
_BROKERS = with_examples({"Brokers": {"servers": "broker-1:9092,broker-2:9092"}})
_TOPIC = with_examples({"Topic": {"servers": "broker-1:9092", "topic": "orders"}})


class BrokersIn(RequestBody):
    """The brokers to ask, as in a source: secrets are names of secrets of the site.

    topic_pattern: only topics whose whole name matches.
    """

    servers: str
    topic_pattern: str = ""
    options: dict[str, str] = Field(default_factory=dict)
    secrets: dict[str, str] = Field(default_factory=dict)


class SourceStatusOut(fields_of(SourceStatus)):  # type: ignore[misc]
    """How far a source is read; error: why its place does not answer, empty if it does."""

    unread: int
    lag_s: float


@router.post("/{slug}/topics", response=list[dataclass_schema(ListedTopic)], openapi_extra=_BROKERS)  # type: ignore[misc]
def find_topics(request: HttpRequest, slug: str, body: BrokersIn) -> Any:
    """List the topics of brokers that the list of destinations has, or those of a pattern."""
    return list_topics(caller(request), cluster_of(request), body.model_dump())


@router.post("/{slug}/topics/sample", response=dataclass_schema(SourceSample), openapi_extra=_TOPIC)
def read_sample(request: HttpRequest, slug: str, body: SourceBody) -> Any:
    """Return the newest messages of a topic, and the schema that any kind of source suggests."""
    row = body.model_dump(exclude_defaults=True)
    return sample(caller(request), cluster_of(request), row)


@router.get("/{slug}/streams/{stream}/topic", response=SourceStatusOut)
def get_topic(request: HttpRequest, slug: str, stream: str) -> Any:
    """Return how far the source of a stream is read. 404 before the pipeline has asked for it."""
    row = stream_by_key(cluster_of(request), stream)
    status = source_status(row)
    if status is None:
        raise NotFound("topic", row.name)
    return status
