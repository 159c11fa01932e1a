"""Cuts of a source: how far each partition is read, and the watermark that follows from it.

A cut is a value in the offset of a batch. What a batch reads lies between two cuts, and what is
late in it follows from the cut. So the result depends on the messages and the cuts only, never on
the order in which partitions are read.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from controlplane.wire.log.values import NO_TIME, Watermark


class PartitionPosition(NamedTuple):
    """How far a partition is read.

    `offset`: of the first unread message; `ms`, `ahead_ms`, `since_ms`: the watermark of the
    messages before (`Watermark`), None for none. `active_ms`: when the partition last had an unread
    message, by the clock of batches; `appended_ms`: the newest timestamp of a read message;
    `added_ms`: when the partition was added to a topic that was read already, 0: it was not.
    """

    offset: int
    ms: int | None = None
    ahead_ms: int | None = None
    since_ms: int = 0
    active_ms: int = 0
    appended_ms: int = 0
    added_ms: int = 0

    @property
    def watermark(self) -> Watermark:
        """Return the watermark of the messages before the offset."""
        ms, ahead = (NO_TIME if t is None else t for t in (self.ms, self.ahead_ms))
        return Watermark(ms, ahead, self.since_ms)

    def with_watermark(self, watermark: Watermark) -> "PartitionPosition":
        """Return the position with another watermark."""
        ms, ahead = (None if t == NO_TIME else t for t in watermark[:2])
        return self._replace(ms=ms, ahead_ms=ahead, since_ms=watermark.since_ms)


@dataclass(frozen=True, slots=True)
class SourceCut:
    """How far a source is read.

    `identity`: of the source (`StreamSource.identity`); `partitions`: by number. `mark_ms`: the
    watermark of the stream for the records after the cut before, None for none; it never falls.
    `size`: mean bytes of a message, 0 while unknown. `is_active`: whether a partition is not idle.
    `topics`: of a pattern all that were read so far, in the order of their numbers (`place_of`).
    """

    identity: str
    partitions: Mapping[int, PartitionPosition] = field(default_factory=dict)
    mark_ms: int | None = None
    size: int = 0
    is_active: bool = True
    topics: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the cut as JSON values."""
        partitions = {str(number): list(place) for number, place in self.partitions.items()}
        return {
            "identity": self.identity, "partitions": partitions, "mark_ms": self.mark_ms,
            "size": self.size, "is_active": self.is_active, "topics": list(self.topics),
        }  # fmt: skip

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "SourceCut":
        """Return the cut that `to_json` wrote."""
        partitions = {int(number): PartitionPosition(*p) for number, p in row["partitions"].items()}
        topics = tuple(row.get("topics", ()))
        return cls(
            row["identity"], partitions, row["mark_ms"], row["size"], row["is_active"], topics
        )

    def records_since(self, before: "SourceCut | None") -> int:
        """Return how many offsets lie between two cuts."""
        if before is None or before.identity != self.identity:
            return 0
        pairs = ((before.partitions.get(n), place) for n, place in self.partitions.items())
        return sum(max(0, place.offset - old.offset) for old, place in pairs if old is not None)

    @property
    def is_unread(self) -> bool:
        """Return whether no record has been read."""
        return not any(place.appended_ms for place in self.partitions.values())

    def newest_ms(self) -> int | None:
        """Return the newest event time that was read, also of times ahead; None for none."""
        times = (t for place in self.partitions.values() for t in (place.ms, place.ahead_ms))
        return max((t for t in times if t is not None), default=None)


def combined_ms(
    before_ms: int | None,
    partitions: Mapping[int, PartitionPosition],
    unread: Collection[int],
    clock_ms: int,
    idle_ms: int,
) -> int | None:
    """Return the watermark of a stream: the least of its partitions that are not idle.

    A partition is idle if it has no unread message and had none for `idle_ms`; if all are, the
    largest counts. `before_ms`: the watermark before, which never falls.
    """
    active = active_partitions(partitions, unread, clock_ms, idle_ms)
    every = [place.ms for number, place in partitions.items() if number in (active or partitions)]
    known = [ms for ms in every if ms is not None]
    reached = [max(known, default=None)]
    if active:
        reached = [min(known) if known and len(known) == len(every) else None]
    return max((ms for ms in (before_ms, *reached) if ms is not None), default=None)


def active_partitions(
    partitions: Mapping[int, PartitionPosition],
    unread: Collection[int],
    clock_ms: int,
    idle_ms: int,
) -> set[int]:
    """Return the partitions that are not idle, as `combined_ms` takes them."""
    return {
        number
        for number, place in partitions.items()
        if number in unread or clock_ms - place.active_ms <= idle_ms
    }
