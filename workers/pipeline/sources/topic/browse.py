"""Messages of a topic that are looked at."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaException, Message

from controlplane.wire.schema import StreamSchema
from controlplane.wire.topics.base import BadSource
from controlplane.wire.topics.clients import (
    NoSuchTopic,
    consumer_of,
    ends_of,
    messages_between,
    offsets_at,
    places_of,
    unavailable,
)
from controlplane.wire.topics.places import Place, TooManyTopics
from controlplane.wire.topics.registry import prefix_of, registry_of
from controlplane.wire.topics.source import MessageFormat, TopicSource
from workers.pipeline.sources.browse import BrowsedChunk, BrowsePlace, RecordsReader, StreamKey
from workers.pipeline.sources.entries import Chunk, Decoded
from workers.pipeline.sources.topic.decode import decode
from workers.pipeline.sources.topic.messages import Fetched, record_rows, row_text

_GROUP: Final = "weir-browse"
_BYTES: Final = 8 * 2**20
_NO_VALUE: Final = "is a message without a value"
_SKIPPED: Final = "is a change that the source skips"


def _fault(source: TopicSource, place: BrowsePlace, every: Sequence[Place]) -> dict[str, str]:
    """Return why no partition is that of a place, by the field that is wrong."""
    if place.topic and all(own.topic != place.topic for own in every):
        text = f"no topic that matches {source.topic_pattern} has the name {place.topic}"
        return {"place_topic": text}
    return {"partition": f"{place.topic or source.name} has no partition {place.partition}"}


def reader_of(
    source: TopicSource, schema: StreamSchema | None, place: BrowsePlace, key: StreamKey
) -> RecordsReader:
    """Ask the brokers for messages, and return what decodes them.

    Without a schema they are read in their format only. Raises `SourceUnavailable` and `BadSource`.
    """
    del key
    try:
        with closing(consumer_of(source, _GROUP)) as consumer:
            every = places_of(consumer, source)
            places = [own for own in every if place.has(own)]
            if every and not places:
                raise BadSource(_fault(source, place, every))
            ends = ends_of(consumer, places)
            ranges = place.ranges(ends, partial(offsets_at, consumer, places))
            messages = messages_between(consumer, ranges, _BYTES)
    except (NoSuchTopic, TooManyTopics) as error:
        raise BadSource(
            {"topic_pattern" if source.topic_pattern else "topic": str(error)}
        ) from None
    except KafkaException as error:
        raise unavailable(error) from error
    # Timestamps of messages do not only grow.
    messages = [message for message in messages if message.timestamp()[1] >= (place.since_ms or 0)]
    # The child finds the schemas in what is kept: it asks nobody.
    if source.registry:
        for number in {prefix_of(message.value() or b"") for message in messages} - {None}:
            registry_of(source).definition(number or 0)
    return partial(_chunks, source, schema, messages)


def _chunks(
    source: TopicSource, schema: StreamSchema | None, messages: "Sequence[Message[Any, Any]]"
) -> Iterator[BrowsedChunk]:
    places: dict[tuple[Place, bool], list[Any]] = {}
    for message in messages:
        place = Place(message.topic() or "", message.partition() or 0)
        places.setdefault((place, message.value() is None), []).append(message)
    for (place, is_empty), own in sorted(places.items()):
        yield _chunk(source, schema, _fetched(place, own), is_empty=is_empty)


def _fetched(place: Place, messages: Sequence[Any]) -> Fetched:
    return Fetched(
        place.partition,
        [message.offset() or 0 for message in messages],
        [message.value() or b"" for message in messages],
        [message.key() for message in messages],
        [max(0, message.timestamp()[1]) for message in messages],
        place.topic,
    )


def _chunk(
    source: TopicSource, schema: StreamSchema | None, own: Fetched, *, is_empty: bool
) -> BrowsedChunk:
    count, faults = len(own.offsets), dict[int, str]()
    names = [] if schema is None else [n for n in schema.arrow.names if n not in source.metadata]
    rows, changes = record_rows(own, source, names, {} if schema else faults)
    if not source.is_decoded or (schema and source.format == MessageFormat.STRING):
        rows = [{}] * count
    if schema is None or is_empty:
        faults |= dict.fromkeys(changes.skipped, _SKIPPED)
        faults |= dict.fromkeys(range(count), _NO_VALUE) if is_empty else {}
        decoded = Decoded(_no_records(), np.zeros(0, np.int64), faults)
    else:
        decoded = decode(own, source, schema)
    keys = ["" if key is None else key.decode("utf-8", "replace") for key in own.keys]
    # Columns are proposed by values of JSON.
    number = str if schema else float
    texts = [row_text(row, number) if row else value.decode("utf-8", "replace")
             for row, value in zip(rows, own.values, strict=True)]  # fmt: skip
    chunk = Chunk(own.offsets, own.times_ms, 0, decoded, lambda _: b"")
    topic = own.topic if source.topic_pattern else ""
    return BrowsedChunk(own.partition, chunk, keys, texts, topic)


def _no_records() -> Any:
    return pa.RecordBatch.from_pylist([], schema=pa.schema([]))
