"""The cut of a batch: how far it reads all sources of a cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controlplane.wire.log.values import LogPosition, position_key
from controlplane.wire.topics.cut import SourceCut


@dataclass(frozen=True, slots=True)
class LogCut(LogPosition):
    """How far the log is read: its only partition has all streams, so one position cuts them.

    `delayed`: the position up to which a stream is read, for streams that are read less far;
    `credit`: records that a split node with a queue may still read, less than its next entry has.
    """

    delayed: Mapping[int, str] = field(default_factory=dict)
    credit: Mapping[int, float] = field(default_factory=dict)

    def of(self, stream: int) -> str:
        """Return the position up to which a stream is read."""
        return self.delayed.get(stream, self.position)

    @property
    def needed(self) -> LogPosition:
        """Return the position before which no stream has an unread record."""
        first = min((self.position, *self.delayed.values()), key=position_key)
        return LogPosition(first, self.total)


@dataclass(frozen=True, slots=True)
class Cut:
    """How far a batch reads the log, and the sources of streams by stream."""

    log: LogCut
    sources: Mapping[int, SourceCut] = field(default_factory=dict)

    @property
    def active(self) -> tuple[int, ...]:
        """Return the streams that are not idle, also without a record in the batch."""
        return *self.log.delayed, *(s for s, cut in self.sources.items() if cut.is_active)

    def records_since(self, before: "Cut") -> int:
        """Return how many records and messages lie between two cuts."""
        read = sum(c.records_since(before.sources.get(s)) for s, c in self.sources.items())
        return self.log.total - before.log.total + read
