"""The interface of a log for its producers and the pipeline."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from controlplane.wire.log.values import (
    DEFAULT_LIMITS,
    UNBOUNDED,
    Block,
    Entry,
    IdempotencyToken,
    Limits,
    LogBacklog,
    LogHead,
    LogPosition,
    StreamBacklog,
)


class Log(Protocol):
    """The durable log of one cluster: appended to by producers, read in cuts by the pipeline.

    A position is a text `<number>-<number>`; positions only grow, over all streams together.
    """

    def append(
        self,
        blocks: Mapping[int, Block],
        token: IdempotencyToken | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> str:
        """Append one block per stream, all at one position, and return it.

        All blocks are in the log or none is. With a token that was used before, nothing is
        added. Raises `LogFull` if `limits` are reached, `AppendTooLarge`,
        `StaleIdempotencyToken`, `IdempotencyTokenReused` if the token had other blocks, and
        `LogUnavailable` when it is not known whether the log has taken it.
        """

    def waiting(self) -> LogBacklog:
        """Return the unread backlog. Raises `LogUnavailable`."""

    def head(self, streams: Sequence[int]) -> LogHead:
        """Return the head of the log, with the newest event times of these streams.

        In Kafka, the newest position that the pipeline has indexed. Raises `LogUnavailable`.
        """

    def committed_position(self) -> LogPosition:
        """Return the last committed cut, the start of the log before the first."""

    def position_after(
        self, start: LogPosition, max_records: int, max_bytes: int = UNBOUNDED
    ) -> LogPosition:
        """Return the last position within both limits after `start`, at least one append later.

        `max_bytes` counts the bytes of blocks, as appends do. Returns `start` where nothing was
        appended since.
        """

    def read_streams(self, streams: Sequence[int], start: str, end: str) -> dict[int, list[Entry]]:
        """Return the entries of each stream after `start` up to and including `end`.

        Both are positions of the log. All readers get the same result until `end`
        is committed.
        """

    def behind(self, streams: Sequence[int], end: str) -> dict[int, StreamBacklog]:
        """Return the backlog after `end` by stream, without empty and unknown ones."""

    def mark_committed(self, position: LogPosition) -> None:
        """Record that everything up to `position` is processed: no replay requests it any more."""

    def close(self) -> None:
        """Close the connections."""
