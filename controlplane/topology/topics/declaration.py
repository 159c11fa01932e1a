"""Sources of streams before a stream is declared: topics of brokers, faults of a declaration."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaException
from pydantic import BaseModel, Field, create_model

from controlplane.access.roles import Actor, require_operator
from controlplane.errors import Away, Fields, Invalid
from controlplane.models import Cluster
from controlplane.wire.errors import SourceUnavailable
from controlplane.wire.schema import StreamSchema
from controlplane.wire.sources.kinds import fields_of_kinds, source_from_json
from controlplane.wire.topics.base import BadSource, StreamSource
from controlplane.wire.topics.clients import consumer_of, topics_of
from controlplane.wire.topics.definitions import check_definition
from controlplane.wire.topics.places import TooManyTopics, matching
from controlplane.wire.topics.source import TopicSource


def source_of(row: Mapping[str, Any]) -> StreamSource | None:
    """Return the source that a row has, None for a stream in the log of the cluster."""
    return source_from_json(row) if row else None


def source_body(base: type[BaseModel]) -> Any:
    """Return a model with the fields of all kinds of sources."""
    columns: dict[str, Any] = {
        name: (item.type, Field(item.default, description=item.about))
        for name, item in fields_of_kinds().items()
    }
    return create_model("_Source", __base__=base, **columns)


def source_faults(row: Mapping[str, Any], schema: StreamSchema | None) -> Fields:
    """Return why a stream of this schema cannot be read from a source, by field.

    `schema`: None if the stream keeps its own. The list of the site must have the brokers or the
    directory; they are not asked.
    """
    try:
        source = source_from_json(row)
        if isinstance(source, TopicSource):
            check_definition(source)
    except BadSource as error:
        return _fields(error.fields)
    faults = {} if schema is None else source.faults_with_schema(schema)
    return _fields(faults | (source.refusals()))


def _fields(faults: Mapping[str, str]) -> Fields:
    return {f"source.{name}": [f"{why[0].upper()}{why[1:]}"] for name, why in faults.items()}


_RETRY_S: Final = 5
_GROUP: Final = "weir-sample"
# A topic of any name, to list those that there are.
_ANY: Final = "any"


@dataclass(frozen=True)
class ListedTopic:
    """A topic of the brokers."""

    topic: str
    partitions: int


def list_topics(actor: Actor, cluster: Cluster, row: Mapping[str, Any]) -> list[ListedTopic]:
    """Return the topics of brokers by name, those of a pattern only if `row`, a source, has one.

    Raises `Forbidden`, `Invalid`, and `Away` if the brokers do not answer.
    """
    pattern = row.get("topic_pattern", "")
    require_operator(actor, cluster)
    any_topic = dict(row) if pattern else {"topic": _ANY} | dict(row)
    if faults := source_faults(any_topic, None):
        raise Invalid(faults)
    try:
        with closing(consumer_of(TopicSource.from_json(any_topic), _GROUP)) as consumer:
            topics = topics_of(consumer)
        topics = matching(pattern, topics) if pattern else topics
    except BadSource as error:
        raise Invalid({f"source.{name}": [why] for name, why in error.fields.items()}) from None
    except TooManyTopics as error:
        raise Invalid({"source.topic_pattern": [str(error)]}) from None
    except (SourceUnavailable, KafkaException) as error:
        raise Away("brokers_away", f"The brokers do not respond: {error}", _RETRY_S) from None
    return [ListedTopic(name, count) for name, count in sorted(topics.items())]
