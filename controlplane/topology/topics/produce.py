"""Writing one message to the topic of a stream, by a role that the stream names."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from confluent_kafka import KafkaException

from controlplane.access import audit
from controlplane.access.roles import Actor, require, require_operator
from controlplane.errors import Away, Conflict, Invalid
from controlplane.models import Stream
from controlplane.topology.topics.declaration import source_of
from controlplane.wire.errors import LogUnavailable
from controlplane.wire.topics.base import BadSource
from controlplane.wire.topics.clients import send_message
from controlplane.wire.topics.definitions import (
    Definition,
    avro_body,
    declared_definition,
    protobuf_body,
)
from controlplane.wire.topics.registry import registry_of, subject_of, with_prefix
from controlplane.wire.topics.source import MessageFormat, TopicSource

MOST_BYTES: Final = 256 * 1024
_MOST_KEY: Final = 1_000
_MOST_PARTITION: Final = 2**31 - 1
_RETRY_S: Final = 5


@dataclass(frozen=True)
class ProducedMessage:
    """Where a message was written."""

    partition: int
    offset: int


def produce(
    actor: Actor, stream: Stream, value: str, key: str = "", partition: int | None = None
) -> ProducedMessage:
    """Write a message; `value`: JSON that is written in the format of the topic, or its text.

    Without a partition, the key decides. The audit log has its place and its size. Raises
    `Forbidden`, `Invalid`, `Conflict` not_writable, and `Away`.
    """
    require_operator(actor, stream.cluster)
    source = source_of(stream.source)
    if not isinstance(source, TopicSource) or not source.produce:
        text = f"{stream.name} lets nobody write messages: its source names no role in produce"
        raise Conflict("not_writable", text)
    require(actor, source.produce, stream.cluster)
    _check(value, key, partition)
    try:
        body = _encoded(source, value)
        place = send_message(source, body, key.encode() if key else None, partition)
    except BadSource as error:
        raise Invalid({f"source.{name}": [why] for name, why in error.fields.items()}) from None
    except ValueError as error:
        raise Invalid({"value": [f"Is not a message of {source.format}: {error}"]}) from None
    except (LogUnavailable, KafkaException) as error:
        raise Away("brokers_away", f"The message was not written: {error}", _RETRY_S) from None
    audit.record(
        actor, "topic.produce", stream.name, cluster=stream.cluster,
        after={"topic": source.topic, "partition": place[0], "offset": place[1],
               "bytes": len(body)},
    )  # fmt: skip
    return ProducedMessage(*place)


def _check(value: str, key: str, partition: int | None) -> None:
    faults = {}
    if not value or len(value.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        faults["value"] = [f"Must have 1 to {MOST_BYTES:,} bytes"]
    if len(key) > _MOST_KEY:
        faults["key"] = [f"Must have at most {_MOST_KEY:,} characters"]
    if partition is not None and not 0 <= partition <= _MOST_PARTITION:
        faults["partition"] = ["Must be a number from 0"]
    if faults:
        raise Invalid(faults)


def _encoded(source: TopicSource, value: str) -> bytes:
    """Return a message in the format of a source. Raises ValueError."""
    if source.format in {MessageFormat.STRING, MessageFormat.CSV}:
        return value.encode()
    row = json.loads(value, parse_float=Decimal)
    if not isinstance(row, Mapping):
        raise ValueError("it is not an object of JSON")
    number, definition = _definition(source)
    if source.format == MessageFormat.JSON:
        body = value.encode()
    elif source.format == MessageFormat.AVRO:
        body = avro_body(definition, row)
    else:
        # The first type of a file of the registry has the place 0.
        prefix = b"" if number is None else b"\0"
        body = prefix + protobuf_body(definition, json.loads(value))
    return body if number is None else with_prefix(number, body)


def _definition(source: TopicSource) -> tuple[int | None, Definition]:
    """Return the schema to write with, and its identifier: the newest of the topic's subject."""
    if not source.registry:
        return None, declared_definition(source)
    subject = subject_of(source.topic)
    newest: Any = registry_of(source).latest(subject)
    if newest is None:
        raise ValueError(f"the registry has no schema of {subject}")
    return newest[0], newest[1]
