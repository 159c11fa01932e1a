"""Consumers of a team's topic: their settings, with secrets that only the site knows."""

import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from controlplane.wire.errors import SourceUnavailable
from controlplane.wire.log.kafka_clients import new_client
from controlplane.wire.log.kafka_reader import LOG_SETTINGS
from controlplane.wire.network.secrets import NoSecret, SecretOf, named_secret
from controlplane.wire.topics.base import BadSource
from controlplane.wire.topics.places import STRIDE, Place, TooManyTopics, matching
from controlplane.wire.topics.source import SECRETS, TopicSource
from controlplane.wire.topics.tokens import with_tokens

TIMEOUT_S: Final = 5.0
_FETCHED: Final = 500
# Instead of times: the first message and the end of a partition.
_FIRST, _END = OFFSET_BEGINNING, OFFSET_END


class NoSuchTopic(SourceUnavailable):
    """The brokers have no such topic."""


def unavailable(error: KafkaException) -> SourceUnavailable:
    """Return the exception of the wire for an error of a client, in librdkafka's words."""
    own = error.args[0] if error.args else error
    return SourceUnavailable(own.str() if isinstance(own, KafkaError) else str(own))


def secret_of(source: TopicSource, setting: str) -> str:
    """Return the secret of a setting, "" for one that has none. Raises `BadSource`."""
    if setting not in source.secrets:
        return ""
    try:
        return named_secret(SecretOf.TOPICS, source.secrets[setting])
    except NoSecret as error:
        raise BadSource({f"secrets.{setting}": str(error)}) from None


def settings_of(source: TopicSource, group: str) -> dict[str, Any]:
    """Return the settings of a consumer. Raises `BadSource` without a secret."""
    return {
        "group.id": group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        # Messages that are gone must not be skipped silently.
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": False,
        "fetch.wait.max.ms": 20,
        # So that no partition comes long before the others.
        "fetch.message.max.bytes": 128 * 1024,
        "fetch.queue.backoff.ms": 20,
        "queued.max.messages.kbytes": 16 * 1024,
        **access_to(source),
    }


def access_to(source: TopicSource) -> dict[str, Any]:
    """Return the settings of any client of the brokers. Raises `BadSource` without a secret."""
    secrets = {name: secret_of(source, name) for name in source.secrets if name in SECRETS}
    return with_tokens({**LOG_SETTINGS, **source.options, **secrets})


def consumer_of(source: TopicSource, group: str) -> Consumer:
    """Return a consumer without an assignment. Raises `BadSource` and `SourceUnavailable`."""
    try:
        return new_client(Consumer, source.servers, settings_of(source, group))
    except KafkaException as error:
        raise unavailable(error) from error


def send_message(
    source: TopicSource, value: bytes, key: bytes | None, partition: int | None
) -> tuple[int, int]:
    """Write one message; return its partition and its offset.

    Raises `BadSource`, and `SourceUnavailable` if the brokers do not acknowledge it.
    """
    answers: list[tuple[Any, Any]] = []
    settings = access_to(source) | {
        "enable.idempotence": True, "message.timeout.ms": round(1000 * TIMEOUT_S),
        "allow.auto.create.topics": False,
    }  # fmt: skip
    try:
        producer = new_client(Producer, source.servers, settings)
        producer.produce(
            source.topic, value, key, -1 if partition is None else partition,
            on_delivery=lambda *answer: answers.append(answer),
        )  # fmt: skip
        producer.flush(2 * TIMEOUT_S)
    except KafkaException as error:
        raise unavailable(error) from error
    if not answers or answers[0][0] is not None:
        raise SourceUnavailable(answers[0][0].str() if answers else "no broker has answered")
    return answers[0][1].partition(), answers[0][1].offset()


def topics_of(consumer: Consumer) -> dict[str, int]:
    """Return the numbers of partitions of all topics that the brokers list, without internal ones.

    Raises `SourceUnavailable`.
    """
    try:
        topics = consumer.list_topics(timeout=TIMEOUT_S).topics
    except KafkaException as error:
        raise unavailable(error) from error
    return {
        name: len(topic.partitions) for name, topic in topics.items() if not name.startswith("__")
    }


def partitions_of(consumer: Consumer, topic: str) -> list[int]:
    """Return the partitions of a topic. Raises `NoSuchTopic` and `SourceUnavailable`."""
    try:
        metadata = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
    except KafkaException as error:
        raise unavailable(error) from error
    why = metadata.error
    if why is not None and why.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        raise NoSuchTopic(f"the brokers have no topic {topic}: {why}")
    if why is not None or not metadata.partitions:
        raise SourceUnavailable(f"the brokers list no partition of {topic}: {why or 'try again'}")
    return sorted(metadata.partitions)


def places_of(
    consumer: Consumer, source: TopicSource, known: Mapping[str, int] | None = None
) -> list[Place]:
    """Return the partitions of the topic of a source, or of all topics that match its pattern.

    `known`: as of `matching`. Raises `NoSuchTopic`, `TooManyTopics` and `SourceUnavailable`.
    """
    if source.topic:
        numbers = partitions_of(consumer, source.topic)
        if len(numbers) > STRIDE:
            raise TooManyTopics(f"the topic has more than {STRIDE:,} partitions")
        return [Place(source.topic, number) for number in numbers]
    topics = matching(source.topic_pattern, topics_of(consumer), known)
    return [Place(name, number) for name, count in topics.items() for number in range(count)]


def ends_of(
    consumer: Consumer, places: Iterable[Place], failed: dict[Place, KafkaError] | None = None
) -> dict[Place, tuple[int, int]]:
    """Return the first offset and the end offset of each partition. Raises `SourceUnavailable`.

    `failed`: gets the partitions that do not answer, which are left out; without it they raise.
    """
    first = _offsets(consumer, dict.fromkeys(places, _FIRST), failed)
    end = _offsets(consumer, dict.fromkeys(first, _END), failed)
    return {place: (first[place], offset) for place, offset in end.items()}


def offsets_at(consumer: Consumer, places: Iterable[Place], time_ms: int) -> dict[Place, int]:
    """Return by partition the offset of the first message that is not older than a time.

    Without such a message, the end offset. Raises `SourceUnavailable`.
    """
    offsets = _offsets(consumer, dict.fromkeys(places, time_ms))
    late = {place: _END for place, offset in offsets.items() if offset < 0}
    return offsets | _offsets(consumer, late)


def committed_offsets(consumer: Consumer, places: Collection[Place]) -> dict[Place, int]:
    """Return the offsets that the consumer's group has committed. Raises `SourceUnavailable`."""
    if not places:
        return {}
    try:
        answer = consumer.committed([TopicPartition(*p) for p in places], timeout=TIMEOUT_S)
    except KafkaException as error:
        raise unavailable(error) from error
    return {Place(p.topic, p.partition): p.offset for p in answer if p.offset >= 0}


def commit_offsets(consumer: Consumer, offsets: Mapping[Place, int]) -> None:
    """Commit offsets for the consumer's group. Raises `SourceUnavailable`."""
    places = [TopicPartition(*place, offset) for place, offset in offsets.items()]
    try:
        consumer.commit(offsets=places, asynchronous=False)
    except KafkaException as error:
        raise unavailable(error) from error


def messages_between(
    consumer: Consumer, ranges: Mapping[Place, tuple[int, int]], most_bytes: int
) -> "list[Message[Any, Any]]":
    """Return the messages of ranges of offsets that come within 5 s, up to a number of bytes."""
    starts = {place: start for place, (start, stop) in ranges.items() if stop > start}
    consumer.assign([TopicPartition(*place, start) for place, start in starts.items()])
    waiting, deadline, messages = set(starts), time.monotonic() + TIMEOUT_S, list[Any]()
    size = 0
    while waiting and size < most_bytes and time.monotonic() < deadline:
        for message in consumer.consume(_FETCHED, timeout=0.5):
            place, offset = Place(message.topic() or "", message.partition() or 0), message.offset()
            is_last = message.error() is not None or (offset or 0) + 1 >= ranges[place][1]
            if message.error() is None and (offset or 0) < ranges[place][1]:
                messages.append(message)
                size += len(message)
            if is_last:
                waiting.discard(place)
    return messages


def _offsets(
    consumer: Consumer, times: Mapping[Place, int], failed: dict[Place, KafkaError] | None = None
) -> dict[Place, int]:
    if not times:
        return {}
    places = [TopicPartition(*place, time) for place, time in times.items()]
    try:
        answer = consumer.offsets_for_times(places, timeout=TIMEOUT_S)
    except KafkaException as error:
        raise unavailable(error) from error
    errors = {Place(p.topic, p.partition): p.error for p in answer if p.error is not None}
    if errors and failed is None:
        raise SourceUnavailable(failure_of(errors))
    if failed is not None:
        failed |= errors
    return {Place(p.topic, p.partition): p.offset for p in answer if p.error is None}


def failure_of(failed: Mapping[Place, KafkaError]) -> str:
    """Return why partitions do not answer, by the first of them."""
    place, error = min(failed.items(), key=lambda item: item[0])
    more = f" and {len(failed) - 1:,} more" if len(failed) > 1 else ""
    return f"{place.topic}-{place.partition}{more}: {error.str()}"
