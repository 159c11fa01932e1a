"""Topics of brokers before a stream is declared."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaException

from controlplane.access.roles import Actor, require_operator
from controlplane.errors import Away, Invalid
from controlplane.models import Cluster
from controlplane.topology.topics.declaration import source_faults
from controlplane.wire.errors import SourceUnavailable
from controlplane.wire.topics.base import BadSource
from controlplane.wire.topics.clients import consumer_of, topics_of
from controlplane.wire.topics.places import TooManyTopics, matching
from controlplane.wire.topics.source import TopicSource

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
