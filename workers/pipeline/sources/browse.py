"""Records of a source that are looked at: no position of a reader moves.

The module `browse` of a kind of source has `reader_of`, which returns a `RecordsReader`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from workers.pipeline.sources.entries import Chunk

# A partition: its number, or that of a topic.
_Part = TypeVar("_Part", bound="int | tuple[str, int]")


class BrowsedChunk(NamedTuple):
    """A chunk with the keys and the values of its records as people read them.

    `topic`: of a pattern that of the partition, else empty.
    """

    partition: int
    chunk: Chunk
    keys: Sequence[str]
    texts: Sequence[str]
    topic: str = ""


# Reads and decodes the records; a confined process calls it.
RecordsReader = Callable[[], Iterable[BrowsedChunk]]


@dataclass(frozen=True)
class StreamKey:
    """The stream of a source; `results_url`: of the database with the index of its files."""

    cluster: str
    stream: int
    results_url: str


@dataclass(frozen=True)
class BrowsePlace:
    """Which records are read: the newest, or the first ones from an offset or a time (ms).

    `count`: of each partition, or of all together if `is_shared`; `partition`: None for all;
    `topic`: of a pattern, empty for all.
    """

    count: int
    partition: int | None = None
    offset: int | None = None
    since_ms: int | None = None
    is_shared: bool = False
    topic: str = ""

    def has(self, part: int | tuple[str, int]) -> bool:
        """Return whether records of a partition are read."""
        topic, number = part if isinstance(part, tuple) else (self.topic, part)
        return self.topic in {"", topic} and self.partition in {None, number}

    @property
    def is_from_start(self) -> bool:
        """Return whether the first records from a place are read, not the newest."""
        return self.offset is not None or self.since_ms is not None

    def ranges(
        self,
        ends: Mapping[_Part, tuple[int, int]],
        starts_at: Callable[[int], Mapping[_Part, int]],
    ) -> dict[_Part, tuple[int, int]]:
        """Return the offsets to read by partition.

        `ends`: the first offset and the end of each; `starts_at`: the offsets of a time.
        """
        own = {part: pair for part, pair in ends.items() if self.has(part)}
        count = -(-self.count // max(1, len(own))) if self.is_shared else self.count
        if not self.is_from_start:
            return {n: (max(first, end - count), end) for n, (first, end) in own.items()}
        starts: Mapping[_Part, int] = dict.fromkeys(own, self.offset or 0)
        if self.since_ms is not None:
            starts = starts_at(self.since_ms)
        begins = {n: max(starts.get(n, first), first) for n, (first, _) in own.items()}
        return {n: (begins[n], min(begins[n] + count, end)) for n, (_, end) in own.items()}
