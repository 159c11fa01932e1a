"""The unread part of a topic, as a producer sees it.

Kafka has the end of the log; the group's last commit is the position of the pipeline, and its
metadata has the totals up to there. Later appends of this process are counted exactly; those of
other processes are estimated by the number of messages and the size of the newest.
"""

import json
import time
from collections import deque
from threading import Lock
from typing import Final, NamedTuple

from controlplane.wire.errors import LogFull
from controlplane.wire.log.kafka_message import Append
from controlplane.wire.log.kafka_reader import KafkaReader
from controlplane.wire.log.values import BacklogLimits, LogBacklog

# How long an answer of Kafka is used while the log has room.
_FRESH_S: Final = 0.25


class _Own(NamedTuple):
    """An append of this process: its offset, records and bytes."""

    offset: int
    records: int
    size: int


class BacklogMeter:
    """What waits in one topic; threads may share it."""

    def __init__(self, reader: KafkaReader) -> None:
        self._reader = reader
        self._lock = Lock()
        self._own_appends: deque[_Own] = deque()
        self._records = 0
        self._size = 0
        # The unread records of other producers, and when they were counted.
        self._others = LogBacklog(0, 0)
        self._refreshed_at = -_FRESH_S
        self._sample, self._sampled = LogBacklog(0, 0), -1

    def add(self, offset: int, records: int, size: int) -> None:
        """Count an append of this process."""
        with self._lock:
            self._own_appends.append(_Own(offset, records, size))
            self._records += records
            self._size += size

    def waiting(self) -> LogBacklog:
        """Return what waits. Raises `LogUnavailable`."""
        with self._lock:
            self._refresh()
            return self._sum()

    def check(self, size: int, limits: BacklogLimits) -> None:
        """Raise `LogFull` if the log has no room for `size` bytes, or `LogUnavailable`."""
        with self._lock:
            if time.monotonic() - self._refreshed_at >= _FRESH_S:
                self._refresh()
            if _refusal(self._sum(), size, limits) is not None:
                # The pipeline may have read since.
                self._refresh()
            refusal = _refusal(self._sum(), size, limits)
        if refusal is not None:
            raise refusal

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._reader.close()

    def _sum(self) -> LogBacklog:
        return LogBacklog(self._records + self._others.records, self._size + self._others.bytes)

    def _refresh(self) -> None:
        first, end = self._reader.ends()
        committed = self._reader.committed()
        read = max(first, committed[0] if committed else 0)
        while self._own_appends and self._own_appends[0].offset < read:
            done = self._own_appends.popleft()
            self._records -= done.records
            self._size -= done.size
        messages = max(0, end - read - len(self._own_appends))
        if messages:
            self._sample_message(self._newest_of_others(end))
        item = self._sample
        self._others = LogBacklog(messages * item.records, messages * item.bytes)
        self._refreshed_at = time.monotonic()

    def _newest_of_others(self, end: int) -> int:
        offset = end - 1
        for own in reversed(self._own_appends):
            if own.offset < offset:
                break
            offset = own.offset - 1
        return offset

    def _sample_message(self, offset: int) -> None:
        """Read the size of a message that another process has appended."""
        if offset == self._sampled:
            return
        result: list[Append] = list(self._reader.appends(offset, offset + 1))
        self._sample = LogBacklog(sum(a.records for a in result), sum(len(a.data) for a in result))
        self._sampled = offset


def note_of(total: int, size: int) -> str:
    """Return the note of a commit: records and bytes up to there."""
    return json.dumps({"total": total, "bytes": size})


def total_of(note: str) -> int:
    """Return the number of records in a commit's note."""
    return int(json.loads(note).get("total", 0))


def _refusal(waiting: LogBacklog, size: int, limits: BacklogLimits) -> LogFull | None:
    if waiting.records >= limits.records:
        return LogFull(waiting.records, limits.records, "records")
    if waiting.bytes + size > limits.bytes:
        return LogFull(waiting.bytes, limits.bytes, "bytes")
    return None
