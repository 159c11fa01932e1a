"""How a process asks the brokers for the messages of its ranges."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from confluent_kafka import KafkaError

from controlplane.wire.errors import SourceUnavailable
from controlplane.wire.topics.places import Place
from controlplane.wire.topics.source import TopicSource
from workers.pipeline.sources.topic import read
from workers.pipeline.sources.topic.read import TopicReader

SOURCE = TopicSource("127.0.0.1:1", "orders")
BUSY, RARE = Place("orders", 0), Place("orders", 1)


class Message(NamedTuple):
    """A message as the client gives it; its length is that of its value."""

    place: Place
    number: int
    size: int
    code: int = 0

    def topic(self) -> str:
        return self.place.topic

    def partition(self) -> int:
        return self.place.partition

    def offset(self) -> int:
        return self.number

    def key(self) -> None:
        return None

    def error(self) -> KafkaError | None:
        return KafkaError(self.code) if self.code else None

    def __len__(self) -> int:
        return self.size


class Brokers:
    """A client whose messages of one partition all come before those of the other."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = list(messages)
        self.asked: list[int] = []
        self.assigned: list[tuple[Place, int]] = []
        self.left: list[Place] = []
        self.given = self.given_before_leaving = 0
        self.refusal = 0

    def list_topics(self, topic: str, timeout: float) -> Any:
        listed = SimpleNamespace(error=KafkaError(self.refusal), partitions={})
        return SimpleNamespace(topics={topic: listed})

    def consume(self, count: int, timeout: float) -> list[Message]:
        self.asked.append(count)
        some, self.messages = self.messages[:count], self.messages[count:]
        self.given += len(some)
        return some

    def incremental_assign(self, places: Sequence[Any]) -> None:
        self.assigned += [(Place(one.topic, one.partition), one.offset) for one in places]

    def incremental_unassign(self, places: Sequence[Any]) -> None:
        self.given_before_leaving = self.given
        self.left += [Place(one.topic, one.partition) for one in places]


def reader_with(
    monkeypatch: pytest.MonkeyPatch, busy: int, size: int
) -> tuple[TopicReader, Brokers]:
    """Return a reader, and its client with so many messages of BUSY and ten of RARE."""
    messages = [Message(BUSY, number, size) for number in range(busy)]
    brokers = Brokers([*messages, *(Message(RARE, number, size) for number in range(10))])
    monkeypatch.setattr(read, "consumer_of", lambda source, group: brokers)
    return TopicReader(SOURCE, "g"), brokers


def offsets(reader: TopicReader, start: int, stop: int) -> list[list[int]]:
    ranges = {BUSY: (start, stop), RARE: (start, stop)}
    return [[message.offset() for message in own.messages]
            for own in reader.read(ranges, is_stuck=False).values()]  # fmt: skip


def test_what_comes_behind_a_batch_is_not_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, brokers = reader_with(monkeypatch, 30_000, 100)
    assert offsets(reader, 0, 5) == [[0, 1, 2, 3, 4]] * 2
    assert offsets(reader, 5, 10) == [[5, 6, 7, 8, 9]] * 2
    assert (brokers.assigned, brokers.left) == ([(BUSY, 0), (RARE, 0)], [])


def test_more_than_a_bound_of_bytes_is_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while the messages of another partition are waited for."""
    reader, brokers = reader_with(monkeypatch, 300, 1 << 20)
    assert offsets(reader, 0, 5) == [[0, 1, 2, 3, 4]] * 2
    assert brokers.left == [BUSY]
    assert brokers.given_before_leaving < 100, "of 1 MiB each"
    brokers.messages += [Message(BUSY, number, 1) for number in range(5, 10)]
    assert offsets(reader, 5, 10) == [[5, 6, 7, 8, 9]] * 2
    assert brokers.assigned == [(BUSY, 0), (RARE, 0), (BUSY, 5)]


def test_no_more_messages_are_asked_for_than_the_ranges_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client would wait for others, which nobody may write for long."""
    reader, brokers = reader_with(monkeypatch, 10, 100)
    assert offsets(reader, 0, 10) == [[*range(10)]] * 2
    assert brokers.asked == [20]


@pytest.mark.parametrize("is_refused_at", ["messages", "topics"])
def test_messages_that_the_brokers_refuse_are_not_given_up(
    monkeypatch: pytest.MonkeyPatch, is_refused_at: str
) -> None:
    """Only a topic that there is no longer has lost them; the error names why they wait."""
    monkeypatch.setattr(read, "_SILENT_S", 0.0)
    reader, brokers = reader_with(monkeypatch, 0, 1)
    refused = KafkaError.TOPIC_AUTHORIZATION_FAILED
    brokers.messages = [Message(BUSY, 0, 1, refused)] if is_refused_at == "messages" else []
    brokers.refusal = refused if is_refused_at == "topics" else KafkaError.UNKNOWN_TOPIC_OR_PART
    with pytest.raises(SourceUnavailable, match=KafkaError(refused).str()):
        reader.read({BUSY: (0, 5)}, is_stuck=is_refused_at == "topics")
    brokers.messages, brokers.refusal = [], KafkaError.UNKNOWN_TOPIC_OR_PART
    assert reader.read({BUSY: (0, 5)}, is_stuck=True)[BUSY].lost is not None
