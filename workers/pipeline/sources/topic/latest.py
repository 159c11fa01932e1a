"""What the brokers have of a topic."""

from collections.abc import Mapping
from typing import ClassVar, Final

from confluent_kafka import Consumer

from controlplane.wire.topics.clients import (
    commit_offsets,
    committed_offsets,
    consumer_of,
    ends_of,
    offsets_at,
    partitions_of,
)
from controlplane.wire.topics.source import TopicSource
from workers.pipeline.sources.plan import SourceState
from workers.pipeline.sources.watcher import PlaceWatcher


class TopicWatcher(PlaceWatcher):
    """Follows the ends of one topic, and commits what is read for its consumer group."""

    period_s: ClassVar[float] = 0.5

    def __init__(self, source: TopicSource, cluster: str, stream: int) -> None:
        super().__init__(f"topic {source.topic}")
        self._source, self._group = source, source.group_of(cluster, stream)
        self._consumer: Consumer | None = None
        self._committed: Mapping[int, int] = {}
        self.start()

    def _refresh(self) -> None:
        if self._consumer is None:
            self._consumer = consumer_of(self._source, self._group)
        consumer, topic = self._consumer, self._source.topic
        partitions = partitions_of(consumer, topic)
        ends = ends_of(consumer, topic, partitions)
        starts = self._state.starts or self._starts(consumer, ends)
        self._state = SourceState(ends, starts)
        offsets = self._offsets
        if offsets != self._committed:
            commit_offsets(consumer, topic, offsets)
            self._committed = offsets

    def _end(self) -> None:
        if self._consumer is not None:
            self._consumer.close()

    def _starts(self, consumer: Consumer, ends: Mapping[int, tuple[int, int]]) -> Mapping[int, int]:
        """Return where to start: at what the group has committed, else as declared."""
        source, topic = self._source, self._source.topic
        if source.start_ms is not None:
            starts = offsets_at(consumer, topic, ends, source.start_ms)
        else:
            starts = {n: pair[source.start == "latest"] for n, pair in ends.items()}
        starts |= {int(n): offset for n, offset in source.offsets.items() if int(n) in ends}
        return starts | committed_offsets(consumer, topic, ends)


WATCHER: Final = TopicWatcher
