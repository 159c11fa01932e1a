"""What a log is to its producers and to the pipeline."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from controlplane.wire.log.values import (
    DEFAULT_LIMITS,
    UNBOUNDED,
    Behind,
    Block,
    Cut,
    Entry,
    Limits,
    Stamp,
    Tip,
    Waiting,
)


class Log(Protocol):
    """The durable log of one cluster: appended to by producers, read in cuts by the pipeline.

    A position is a text `<number>-<number>`; positions only grow, over all streams together.
    """

    def append(
        self,
        blocks: Mapping[int, Block],
        stamp: Stamp | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> str:
        """Append one block per stream, all at one position, and return it.

        All blocks are in the log or none is. Under a stamp that was appended before, nothing is
        added. Raises `LogFull` where `limits` are reached, `AppendTooLarge`, `StaleStamp`,
        `StampReused` where the stamp had other blocks, and `LogAway` when it is not known whether
        the log has taken it.
        """

    def waiting(self) -> Waiting:
        """Return what is not read yet. Raises `LogAway`."""

    def tip(self, streams: Sequence[int]) -> Tip:
        """Return how far the log goes, with the streams of which something is there.

        In Kafka, how far the pipeline has looked at it. Raises `LogAway`.
        """

    def committed_cut(self) -> Cut:
        """Return the last committed cut, the start of the log before the first."""

    def cut_after(self, start: Cut, max_records: int, max_bytes: int = UNBOUNDED) -> Cut:
        """Return the furthest cut within both bounds of `start`, at least one append behind it.

        `max_bytes` counts the bytes of blocks, as appends do. Returns `start` where nothing was
        appended since.
        """

    def read_streams(self, streams: Sequence[int], start: str, end: str) -> dict[int, list[Entry]]:
        """Return the entries of each stream after `start` up to and including `end`.

        Both are positions of cuts. The answer is the same whoever reads it, whenever, until `end`
        is committed.
        """

    def behind(self, streams: Sequence[int], end: str) -> dict[int, Behind]:
        """Return what stands behind `end`, by stream; streams without, or not known, are absent."""

    def mark_committed(self, cut: Cut) -> None:
        """Record that everything up to `cut` is processed: no replay asks for it any more."""

    def close(self) -> None:
        """Give the connections back."""
