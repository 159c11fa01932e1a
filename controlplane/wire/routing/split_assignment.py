"""Which split node reads a stream of the log, or a partition of a source."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple

from controlplane.wire.topics.places import STRIDE


class SourcePartition(NamedTuple):
    """What one split node reads: a partition of a stream's source, by its number in the cut.

    A stream of the log of the cluster is one partition, None.
    """

    stream: int
    partition: int | None = None

    @property
    def text(self) -> str:
        """Return the partition for people, with the number of its topic in a pattern."""
        topic, number = divmod(self.partition or 0, STRIDE)
        return f"partition {topic}-{number}" if topic else f"partition {number}"


def assigned(rows: Iterable[tuple[int, Mapping[str, int]]]) -> dict[SourcePartition, int]:
    """Return the explicit assignments of partitions; `rows`: streams, and theirs as stored."""
    return {SourcePartition(stream, int(number)): split
            for stream, splits in rows for number, split in splits.items()}  # fmt: skip


# By stream the part of its records that each split node reads.
SplitShares = Mapping[int, Mapping[int, float]]
_NONE: Final[Mapping[SourcePartition, int]] = MappingProxyType({})


@dataclass(frozen=True)
class SplitAssignment:
    """The split nodes of a cluster's streams and source partitions.

    `splits`: of each stream; `partitions`: of the partitions that are assigned explicitly; `count`:
    the number of split nodes, 0 in a table that was published without it.
    """

    splits: Mapping[int, int]
    partitions: Mapping[SourcePartition, int]
    count: int

    def of(self, stream: int, partition: int | None = None) -> int:
        """Return the split node that reads a partition of a source, None: of the log.

        Those without an assignment have all split nodes in a round-robin from the stream's own.
        """
        first = self.splits[stream]
        if partition is None:
            return first
        assigned = self.partitions.get(SourcePartition(stream, partition))
        if assigned is not None:
            return assigned
        # Of a pattern, the topics, too, are in a round-robin: most have few partitions.
        return (first + sum(divmod(partition, STRIDE))) % self._all

    @cached_property
    def _all(self) -> int:
        return self.count or max(self.splits.values()) + 1


@dataclass(frozen=True)
class SplitReading:
    """Which part of each stream's records a split node reads.

    `parts`: by stream and partition the part of the stream's records that arrives there, of streams
    whose source has several partitions.
    """

    assignment: SplitAssignment
    parts: Mapping[int, Mapping[int, float]]

    def partitions(self, stream: int) -> dict[SourcePartition, float]:
        """Return the partitions of a stream, and the part of its records in each."""
        known = self.parts.get(stream)
        if not known:
            # A source with one partition has it as a stream of the log, unless it is assigned.
            first = SourcePartition(stream, 0)
            return {first if first in self.assignment.partitions else SourcePartition(stream): 1.0}
        return {SourcePartition(stream, number): part for number, part in known.items()}

    def shares(self, moves: Mapping[SourcePartition, int] = _NONE) -> dict[int, dict[int, float]]:
        """Return by stream the part of its records that each split node reads, after `moves`."""
        result: dict[int, dict[int, float]] = {}
        for stream in self.assignment.splits:
            own = result[stream] = {}
            for place, part in self.partitions(stream).items():
                split = moves[place] if place in moves else self.assignment.of(*place)
                own[split] = own.get(split, 0.0) + part
        return result
