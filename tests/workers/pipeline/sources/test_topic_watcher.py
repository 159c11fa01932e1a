"""How the driver asks the brokers for the ends of topics."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, KafkaError, TopicPartition

from controlplane.wire.topics import places
from controlplane.wire.topics.places import STRIDE, TooManyTopics
from controlplane.wire.topics.source import TopicSource
from workers.pipeline.sources.topic import latest
from workers.pipeline.sources.topic.latest import TopicWatcher

SOURCE = TopicSource("broker:9092", topic_pattern="shop-.*")


class Brokers:
    """A client of brokers: numbers of partitions, and errors of partitions by topic."""

    def __init__(self, topics: dict[str, int]) -> None:
        self.topics, self.failing = topics, dict[str, int]()
        self.end, self.listings = 5, 0

    def list_topics(self, timeout: float) -> Any:
        self.listings += 1
        listed = {name: SimpleNamespace(partitions=range(n)) for name, n in self.topics.items()}
        return SimpleNamespace(topics=listed)

    def offsets_for_times(self, asked: Sequence[Any], timeout: float) -> list[Any]:
        return [self._answer(place) for place in asked]

    def _answer(self, place: TopicPartition) -> Any:
        code = self.failing.get(place.topic)
        offset = self.end if place.offset == OFFSET_END else 0
        error = KafkaError(code) if code else None
        return SimpleNamespace(
            topic=place.topic, partition=place.partition, offset=offset, error=error
        )

    def committed(self, asked: Sequence[Any], timeout: float) -> list[Any]:
        return []

    def commit(self, offsets: Sequence[Any], asynchronous: bool) -> None:
        pass


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of watchers, whose threads are not started."""
    result = SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(TopicWatcher, "start", lambda self: None)
    monkeypatch.setattr(latest, "time", SimpleNamespace(monotonic=lambda: result.now_s))
    return result


def watcher_of(monkeypatch: pytest.MonkeyPatch, brokers: Brokers) -> TopicWatcher:
    monkeypatch.setattr(latest, "consumer_of", lambda source, group: brokers)
    return TopicWatcher(SOURCE, "c", 7)


@pytest.mark.usefixtures("clock")
def test_partitions_without_a_leader_keep_their_ends_and_stop_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error names them; those of a topic that is deleted have no ends."""
    brokers = Brokers({"shop-a": 1, "shop-b": 1, "shop-c": 1})
    watcher = watcher_of(monkeypatch, brokers)
    watcher._refresh()
    assert watcher._state.error == ""
    brokers.failing = {
        "shop-a": KafkaError.LEADER_NOT_AVAILABLE, "shop-c": KafkaError.UNKNOWN_TOPIC_OR_PART,
    }  # fmt: skip
    brokers.end = 9
    watcher._refresh()
    assert watcher._state.ends == {0: (0, 5), STRIDE: (0, 9)}
    assert "shop-a-0" in watcher._state.error
    again = watcher_of(monkeypatch, brokers)
    again._refresh()
    assert (again._state.ends, again._state.starts) == ({STRIDE: (0, 9)}, None)
    brokers.failing.clear()
    again._refresh()
    assert again._state.starts == {0: 0, STRIDE: 0, 2 * STRIDE: 0}


def test_topics_are_listed_only_now_and_then(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while none matches, while too many do, and while partitions do not answer."""
    brokers = Brokers({})
    watcher = watcher_of(monkeypatch, brokers)
    for topics, code in (({}, 0), ({"shop-a": 1}, KafkaError.LEADER_NOT_AVAILABLE)):
        brokers.topics, brokers.failing = topics, {"shop-a": code}
        for _ in range(3):
            watcher._refresh()
        clock.now_s += 5
    assert brokers.listings == 2
    monkeypatch.setattr(places, "MOST_TOPICS", 0)
    for _ in range(3):
        with pytest.raises(TooManyTopics):
            watcher._refresh()
    assert brokers.listings == 3


def test_the_partitions_of_deleted_topics_count_toward_the_bound(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "MOST_PARTITIONS", 3)
    brokers = Brokers({"shop-a": 2})
    watcher = watcher_of(monkeypatch, brokers)
    watcher._refresh()
    watcher.commit({0: 3, 1: 3})
    brokers.topics = {"shop-b": 2}
    clock.now_s += 5
    with pytest.raises(TooManyTopics):
        watcher._refresh()
