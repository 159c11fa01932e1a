"""What the brokers have of a topic, or of all topics that match a pattern."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from confluent_kafka import Consumer

from controlplane.wire.topics.clients import (
    NoSuchTopic,
    commit_offsets,
    committed_offsets,
    consumer_of,
    ends_of,
    offsets_at,
    places_of,
)
from controlplane.wire.topics.places import Place, numbers_of
from controlplane.wire.topics.source import TopicSource
from workers.pipeline.sources.plan import SourceState
from workers.pipeline.sources.watcher import PlaceWatcher

# So often all topics are listed, of which a cluster of brokers may have many.
_LISTED_S: Final = 5.0


class TopicWatcher(PlaceWatcher):
    """Follows the ends of topics, and commits what is read for the consumer group.

    `_places`: the partitions that the brokers listed at `_listed_s`, empty until they answer.
    """

    period_s: ClassVar[float] = 0.5

    def __init__(
        self, source: TopicSource, cluster: str, stream: int, topics: tuple[str, ...] = ()
    ) -> None:
        super().__init__(source.place, topics)
        self._source, self._group = source, source.group_of(cluster, stream)
        self._consumer: Consumer | None = None
        self._committed: Mapping[Place, int] = {}
        self._places: Sequence[Place] = ()
        self._listed_s = 0.0
        self.start()

    def _refresh(self) -> None:
        if self._consumer is None:
            self._consumer = consumer_of(self._source, self._group)
        consumer, known = self._consumer, self._state
        places = self._listed(consumer)
        ends = ends_of(consumer, places)
        topics = known.topics
        if self._source.topic_pattern:
            topics += tuple(sorted({place.topic for place in places} - set(topics)))
        numbers = numbers_of(topics or (self._source.topic,), places)
        starts = known.starts
        if starts is None:
            starts = {numbers[p]: offset for p, offset in self._starts(consumer, ends).items()}
        own_ends = {numbers[place]: pair for place, pair in ends.items()}
        self._state, self._places = SourceState(own_ends, starts, topics=topics), places
        self._commit(consumer, numbers)

    def _listed(self, consumer: Consumer) -> Sequence[Place]:
        # A topic that does not answer may be deleted: then all are listed again.
        places, self._places = self._places, ()
        now = time.monotonic()
        if self._source.topic_pattern and places and now - self._listed_s < _LISTED_S:
            return places
        self._listed_s = now
        try:
            return places_of(consumer, self._source, self._state.topics)
        except NoSuchTopic:
            self._state = replace(self._state, ends={})
            raise

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
