"""What the brokers have of a topic, or of all topics that match a pattern."""

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from confluent_kafka import Consumer, KafkaError

from controlplane.wire.topics.clients import (
    NoSuchTopic,
    commit_offsets,
    committed_offsets,
    consumer_of,
    ends_of,
    failure_of,
    offsets_at,
    places_of,
)
from controlplane.wire.topics.places import Place, TooManyTopics, numbers_of, place_of
from controlplane.wire.topics.source import TopicSource
from workers.pipeline.sources.plan import SourceState
from workers.pipeline.sources.watcher import PlaceWatcher

# So often all topics are listed, of which a cluster of brokers may have many.
_LISTED_S: Final = 5.0
# Errors of partitions that there are no longer, though they were listed.
_MISSING: Final = {
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - the client's own errors begin so
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}


class TopicWatcher(PlaceWatcher):
    """Follows the ends of topics, and commits what is read for the consumer group.

    `_places`: the partitions that the brokers listed at `_listed_s`, None if they were too many.
    """

    period_s: ClassVar[float] = 0.5

    def __init__(
        self, source: TopicSource, cluster: str, stream: int, topics: tuple[str, ...] = ()
    ) -> None:
        super().__init__(source.place, topics)
        self._source, self._group = source, source.group_of(cluster, stream)
        self._consumer: Consumer | None = None
        self._committed: Mapping[Place, int] = {}
        self._places: Sequence[Place] | None = ()
        self._listed_s = -math.inf
        self.start()

    def _refresh(self) -> None:
        if self._consumer is None:
            self._consumer = consumer_of(self._source, self._group)
        consumer, known = self._consumer, self._state
        places, failed = self._listed(consumer), dict[Place, KafkaError]()
        ends = ends_of(consumer, places, failed)
        topics = known.topics
        if self._source.topic_pattern:
            topics += tuple(sorted({place.topic for place in places} - set(topics)))
        numbers = numbers_of(topics or (self._source.topic,), places)
        starts = known.starts
        if starts is None and not failed:
            starts = {numbers[p]: offset for p, offset in self._starts(consumer, ends).items()}
        own_ends = {numbers[place]: pair for place, pair in ends.items()}
        waiting = {numbers[p] for p, error in failed.items() if error.code() not in _MISSING}
        own_ends |= {n: pair for n, pair in known.ends.items() if n in waiting}
        error = failure_of(failed) if failed else ""
        self._state = SourceState(own_ends, starts, error, topics)
        self._commit(consumer, numbers)

    def _after(self, error: Exception) -> SourceState:
        state = super()._after(error)
        return replace(state, ends={}) if isinstance(error, NoSuchTopic) else state

    def _listed(self, consumer: Consumer) -> Sequence[Place]:
        now = time.monotonic()
        if self._source.topic_pattern and now - self._listed_s < _LISTED_S:
            if self._places is None:
                raise TooManyTopics(self._state.error)
            return self._places
        try:
            self._places = places_of(consumer, self._source, self._read())
        except TooManyTopics:
            self._places, self._listed_s = None, now
            raise
        self._listed_s = now
        return self._places

    def _read(self) -> Mapping[str, int]:
        """Return the topics that are read, with their partitions up to the newest commit."""
        topics = self._state.topics
        counts = Counter(place_of(topics, number).topic for number in self._offsets)
        return dict.fromkeys(topics, 0) | counts

    def _commit(self, consumer: Consumer, numbers: Mapping[Place, int]) -> None:
        """Commit the offsets that have changed, of the partitions that there are."""
        offsets = self._offsets
        own = {place: offsets[n] for place, n in numbers.items() if n in offsets}
        if changed := dict(own.items() - self._committed.items()):
            commit_offsets(consumer, changed)
            self._committed = own

    def _end(self) -> None:
        if self._consumer is not None:
            self._consumer.close()

    def _starts(
        self, consumer: Consumer, ends: Mapping[Place, tuple[int, int]]
    ) -> Mapping[Place, int]:
        """Return where to start: at what the group has committed, else as declared."""
        source = self._source
        if source.start_ms is not None:
            starts = offsets_at(consumer, ends, source.start_ms)
        else:
            starts = {place: pair[source.start == "latest"] for place, pair in ends.items()}
        own = {Place(source.topic, int(n)): offset for n, offset in source.offsets.items()}
        starts |= {place: offset for place, offset in own.items() if place in ends}
        return starts | committed_offsets(consumer, ends)


WATCHER: Final = TopicWatcher
