"""Topics of brokers before a stream is declared.

Brokers are asked with the settings of a declaration; the messages of a sample are decoded in a
confined child.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException

from controlplane.access.roles import Actor, require_operator
from controlplane.errors import Away, Conflict, Invalid
from controlplane.models import Cluster
from controlplane.records.bodies import Format
from controlplane.telemetry.samples import moment_of
from controlplane.topology.schemas.inference import Inferred, infer
from controlplane.topology.topics.declaration import source_faults
from controlplane.wire.errors import LogUnavailable
from controlplane.wire.topics.base import TOPIC, BadSource
from controlplane.wire.topics.clients import (
    NoSuchTopic,
    consumer_of,
    ends_of,
    newest_messages,
    places_of,
    topics_of,
)
from controlplane.wire.topics.places import TooManyTopics, matching
from controlplane.wire.topics.source import TopicSource

_RETRY_S: Final = 5
# Messages of each partition, and of all, and their bytes, that a sample has at most.
_OF_PARTITION: Final = 50
_MESSAGES: Final = 500
_BYTES: Final = 4 * 2**20
_TEXT: Final = 2_000
_GROUP: Final = "weir-sample"
# A topic of any name, to list those that there are.
_ANY: Final = "any"


@dataclass(frozen=True)
class ListedTopic:
    """A topic of the brokers."""

    topic: str
    partitions: int


@dataclass(frozen=True)
class SampledMessage:
    """A message of a sample; `text`: its value as text; `topic`: of a pattern, else empty."""

    partition: int
    offset: int
    sent_at: datetime
    text: str
    topic: str = ""


@dataclass(frozen=True)
class TopicSample:
    """The newest messages of topics, newest first, and the schema that they suggest."""

    messages: Sequence[SampledMessage]
    proposed: Inferred


def list_topics(actor: Actor, cluster: Cluster, row: Mapping[str, Any]) -> list[ListedTopic]:
    """Return the topics of brokers by name, those of a pattern only if `row`, a source, has one.

    Raises `Forbidden`, `Invalid`, and `Away` if the brokers do not answer.
    """
    pattern = row.get("topic_pattern", "")
    known = dict(row) if pattern else dict(row) | {"topic": _ANY}
    with _consumer(actor, cluster, known) as (consumer, _):
        topics = topics_of(consumer)
        topics = matching(pattern, topics) if pattern else topics
        return [ListedTopic(name, count) for name, count in sorted(topics.items())]


def sample_topic(actor: Actor, cluster: Cluster, row: Mapping[str, Any]) -> TopicSample:
    """Return the newest messages of every partition of a source, and the schema they suggest.

    Raises as `list_topics`, and `Conflict` (no_messages).
    """
    with _consumer(actor, cluster, row) as (consumer, source):
        ends = ends_of(consumer, places_of(consumer, source))
        count = min(_OF_PARTITION, -(-_MESSAGES // max(1, len(ends))))
        newest = newest_messages(consumer, ends, count)
    newest.sort(key=lambda message: -message.timestamp()[1])
    lines = _lines([message.value() for message in newest[:_MESSAGES]])
    if not lines:
        raise Conflict("no_messages", f"The {source.place} has no message to read")
    messages = [
        SampledMessage(
            message.partition() or 0, message.offset() or 0,
            moment_of(max(0, message.timestamp()[1])), _text(message.value()),
            (message.topic() or "") if source.topic_pattern else "",
        )
        for message in newest[:_MESSAGES]
    ]  # fmt: skip
    return TopicSample(messages, infer(lines, Format.NDJSON))


def _lines(values: Sequence[bytes | None]) -> bytes:
    """Return messages as lines, without tombstones, so many as a sample may have bytes."""
    lines, size = list[bytes](), 0
    for value in values:
        if value is not None and size + len(value) <= _BYTES:
            lines.append(b" ".join(value.splitlines()))
            size += len(value)
    return b"\n".join(lines)


@contextmanager
def _consumer(
    actor: Actor, cluster: Cluster, row: Mapping[str, Any]
) -> Iterator[tuple[Consumer, TopicSource]]:
    """Yield a consumer of a declared source, and the source; translate its errors."""
    require_operator(actor, cluster)
    if faults := source_faults(row, None):
        raise Invalid(faults)
    if row.get("kind", TOPIC) != TOPIC:
        raise Invalid({"source.kind": ["Brokers have topics only"]})
    source = TopicSource.from_json(row)
    try:
        with closing(consumer_of(source, _GROUP)) as consumer:
            yield consumer, source
    except BadSource as error:
        raise Invalid({f"source.{name}": [why] for name, why in error.fields.items()}) from None
    except NoSuchTopic as error:
        raise Invalid({"source.topic": [str(error)]}) from None
    except TooManyTopics as error:
        raise Invalid({"source.topic_pattern": [str(error)]}) from None
    except (LogUnavailable, KafkaException) as error:
        raise Away("brokers_away", f"The brokers do not respond: {error}", _RETRY_S) from None


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode("utf-8", "replace")[:_TEXT]
