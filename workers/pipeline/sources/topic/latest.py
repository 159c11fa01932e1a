"""What the brokers have of a topic.

A thread asks them, so the planning of a batch never waits for a broker.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from threading import Event, Thread
from typing import Final

from confluent_kafka import Consumer

from controlplane.wire.errors import WireError
from controlplane.wire.topics.clients import (
    commit_offsets,
    committed_offsets,
    consumer_of,
    ends_of,
    offsets_at,
    partitions_of,
)
from controlplane.wire.topics.source import TopicSource
from workers.pipeline.sources.plan import TopicState

logger = logging.getLogger("weir.pipeline")

_PERIOD_S: Final = 0.5
# So long the first batch of a source waits for the brokers, once.
_FIRST_S: Final = 10.0


class TopicWatcher:
    """Follows the ends of one topic, and commits what is read for its consumer group."""

    def __init__(self, source: TopicSource, cluster: str, stream: int) -> None:
        self._source, self._group = source, source.group_of(cluster, stream)
        self._state = TopicState()
        self._offsets: Mapping[int, int] = {}
        self._committed: Mapping[int, int] = {}
        self._ready, self._stopped = Event(), Event()
        Thread(target=self._run, name=f"topic {source.topic}", daemon=True).start()

    def state(self) -> TopicState:
        """Return what is known; only the first call waits for the brokers, up to 10 s."""
        self._ready.wait(_FIRST_S)
        self._ready.set()
        return self._state

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Let the consumer group have these offsets soon."""
        self._offsets = offsets

    def close(self) -> None:
        """End the thread."""
        self._stopped.set()

    def _run(self) -> None:
        consumer: Consumer | None = None
        while not self._stopped.is_set():
            try:
                consumer = consumer or consumer_of(self._source, self._group)
                self._refresh(consumer)
            except WireError as error:
                if str(error) != self._state.error:
                    logger.warning("topic %s: %s", self._source.topic, error)
                self._state = replace(self._state, error=str(error))
            self._ready.set()
            self._stopped.wait(_PERIOD_S)
        if consumer is not None:
            consumer.close()

    def _refresh(self, consumer: Consumer) -> None:
        topic = self._source.topic
        partitions = partitions_of(consumer, topic)
        ends = ends_of(consumer, topic, partitions)
        starts = self._state.starts or self._starts(consumer, ends)
        self._state = TopicState(ends, starts)
        offsets = self._offsets
        if offsets != self._committed:
            commit_offsets(consumer, topic, offsets)
            self._committed = offsets

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
