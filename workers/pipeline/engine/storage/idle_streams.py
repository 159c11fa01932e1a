"""Idle streams: which streams of a join hold its windows open, and up to where they are closed.

The windows of a join close by the slowest of its streams. A stream is idle once records were
appended to the log of the cluster, of whatever stream, more than its `idle_after_s` after its own
last record; it then holds nothing open. The clock is that of the log: a pipeline that is behind
takes no stream for idle whose records it has not read, and a replay finds the same. What is closed
stays closed: records of a stream that returns are late for these windows, and never half a pair.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from workers.pipeline.engine.evaluation.records import NO_WATERMARK

if TYPE_CHECKING:
    from workers.pipeline.engine.store import Store

CLOCK: Final = "heard"
# What a task that moves takes along of its join.
CLOSED: Final = "closed"


@dataclass(frozen=True)
class LogTimes:
    """The append times of a batch: the newest of the log, and the newest of each stream (ms).

    `idle_ms`: after how long a stream is idle; streams that are not there never are.
    """

    now_ms: int = 0
    streams: Mapping[int, int] = field(default_factory=dict)
    idle_ms: Mapping[int, int] = field(default_factory=dict)


@dataclass
class StreamClock:
    """The append times that a node has seen: of the log, of each stream, and the first.

    `closed_until`: up to where (event time, ms) the windows of each join are closed; `started_ms`:
    what the clock was when the node first had it.
    """

    now_ms: int = 0
    since_ms: int = 0
    last_append_ms: dict[int, int] = field(default_factory=dict)
    closed_until: dict[int, int] = field(default_factory=dict)
    started_ms: dict[int, int] = field(default_factory=dict)
    idle_ms: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def read(cls, store: "Store", log_times: LogTimes | None = None) -> "StreamClock":
        """Return the stored clock, advanced by the append times of a batch."""
        row = json.loads(store.get(CLOCK) or b"[0, 0, [], [], []]")
        result = cls(*row[:2], *map(dict, row[2:]))
        if log_times is not None:
            result._take(log_times)
        return result

    def _take(self, log_times: LogTimes) -> None:
        self.now_ms = max(self.now_ms, log_times.now_ms)
        self.since_ms = self.since_ms or self.now_ms
        self.idle_ms = log_times.idle_ms
        for stream, ms in log_times.streams.items():
            self.last_append_ms[stream] = max(ms, self.last_append_ms.get(stream, ms))

    def save(self, store: "Store", joins: Mapping[int, tuple[int, ...]]) -> None:
        """Write it down; of queries that are not among the joins nothing is kept."""
        self.closed_until = {query: ms for query, ms in self.closed_until.items() if query in joins}
        self.started_ms = {query: ms for query, ms in self.started_ms.items() if query in joins}
        known = self.last_append_ms, self.closed_until, self.started_ms
        row = [self.now_ms, self.since_ms, *(list(item.items()) for item in known)]
        data = json.dumps(row).encode()
        if data != store.get(CLOCK):
            store.put(CLOCK, data)

    def export_query(self, query: int) -> bytes | None:
        """Return the clock of a query for export with a task, None if it is empty."""
        if query not in self.closed_until and query not in self.started_ms:
            return None
        return json.dumps([self.closed_until.get(query), self.started_ms.get(query)]).encode()

    def import_query(self, query: int, data: bytes) -> None:
        """Import the clock of a task from another node; windows closed there stay closed."""
        closed_until, started_ms = json.loads(data)
        if closed_until is not None:
            self.closed_until[query] = max(closed_until, self.closed_until.get(query, closed_until))
        if started_ms is not None:
            self.started_ms[query] = min(started_ms, self.started_ms.get(query, started_ms))

    def is_idle(self, stream: int, begun_ms: int = 0) -> bool:
        """Return whether a stream is idle for what began at `begun_ms`."""
        if stream not in self.idle_ms:
            return False
        heard_ms = max(begun_ms, self.last_append_ms.get(stream, self.since_ms))
        return self.now_ms - heard_ms > self.idle_ms[stream]

    def slowest(
        self, watermarks: Mapping[int, int], streams: tuple[int, ...], begun_ms: int = 0
    ) -> int:
        """Return the least watermark of the active streams; of all streams if all are idle."""
        active = [stream for stream in streams if not self.is_idle(stream, begun_ms)] or streams
        return min(
            (watermarks.get(stream, NO_WATERMARK) for stream in active), default=NO_WATERMARK
        )

    def close(self, joins: Mapping[int, tuple[int, ...]], watermarks: Mapping[int, int]) -> None:
        """Close the windows of joins up to the slowest of their streams, never less than before."""
        for query, streams in joins.items():
            begun_ms = self.started_ms.setdefault(query, self.now_ms) if self.now_ms else 0
            result = self.slowest(watermarks, streams, begun_ms)
            if result > self.closed_until.get(query, NO_WATERMARK):
                self.closed_until[query] = result
