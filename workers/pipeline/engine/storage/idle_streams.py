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

from workers.pipeline.engine.evaluation.records import NO_MARK

if TYPE_CHECKING:
    from workers.pipeline.engine.store import Store

HEARD: Final = "heard"
# What a task that moves takes along of its join.
CLOSED: Final = "closed"


@dataclass(frozen=True)
class Appended:
    """What a batch says of the log: its newest append, and of each stream the newest (ms).

    `idle_ms`: after how long a stream is idle; streams that are not there never are.
    """

    now_ms: int = 0
    streams: Mapping[int, int] = field(default_factory=dict)
    idle_ms: Mapping[int, int] = field(default_factory=dict)


@dataclass
class Clock:
    """What a node knows of the log: the newest append, of each stream its newest, and since when.

    `closed`: up to where (event time, ms) the windows of each join are closed; `begun`: what the
    clock was when the node first had it.
    """

    now_ms: int = 0
    since_ms: int = 0
    heard: dict[int, int] = field(default_factory=dict)
    closed: dict[int, int] = field(default_factory=dict)
    begun: dict[int, int] = field(default_factory=dict)
    idle_ms: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def read(cls, store: "Store", appended: Appended | None = None) -> "Clock":
        """Return what the node knows, with what the batch says."""
        row = json.loads(store.get(HEARD) or b"[0, 0, [], []]")
        # Rows of earlier releases do not say when queries began.
        now_ms, since_ms, heard, closed, *more = row
        found = cls(now_ms, since_ms, dict(heard), dict(closed), dict(*more))
        if appended is not None:
            found._take(appended)
        return found

    def _take(self, appended: Appended) -> None:
        self.now_ms = max(self.now_ms, appended.now_ms)
        self.since_ms = self.since_ms or self.now_ms
        self.idle_ms = appended.idle_ms
        for stream, ms in appended.streams.items():
            self.heard[stream] = max(ms, self.heard.get(stream, ms))

    def keep(self, store: "Store", joins: Mapping[int, tuple[int, ...]]) -> None:
        """Write it down; of queries that are not among the joins nothing is kept."""
        self.closed = {query: ms for query, ms in self.closed.items() if query in joins}
        self.begun = {query: ms for query, ms in self.begun.items() if query in joins}
        known = self.heard, self.closed, self.begun
        row = [self.now_ms, self.since_ms, *(list(one.items()) for one in known)]
        data = json.dumps(row).encode()
        if data != store.get(HEARD):
            store.put(HEARD, data)

    def handed_on(self, query: int) -> bytes | None:
        """Return what a task of a query takes to another node, None where nothing is known."""
        if query not in self.closed and query not in self.begun:
            return None
        return json.dumps([self.closed.get(query), self.begun.get(query)]).encode()

    def take_over(self, query: int, data: bytes) -> None:
        """Take what a task brought from another node: what was closed there is closed here."""
        closed, begun = json.loads(data)
        if closed is not None:
            self.closed[query] = max(closed, self.closed.get(query, closed))
        if begun is not None:
            self.begun[query] = min(begun, self.begun.get(query, begun))

    def is_idle(self, stream: int, begun_ms: int = 0) -> bool:
        """Return whether a stream is idle for what began at `begun_ms`."""
        if stream not in self.idle_ms:
            return False
        heard_ms = max(begun_ms, self.heard.get(stream, self.since_ms))
        return self.now_ms - heard_ms > self.idle_ms[stream]

    def slowest(self, marks: Mapping[int, int], streams: tuple[int, ...], begun_ms: int = 0) -> int:
        """Return up to where the streams have come that are not idle; all of them if all are."""
        active = [stream for stream in streams if not self.is_idle(stream, begun_ms)] or streams
        return min((marks.get(stream, NO_MARK) for stream in active), default=NO_MARK)

    def close(self, joins: Mapping[int, tuple[int, ...]], marks: Mapping[int, int]) -> None:
        """Close the windows of joins up to the slowest of their streams, never less than before."""
        for query, streams in joins.items():
            begun_ms = self.begun.setdefault(query, self.now_ms) if self.now_ms else 0
            found = self.slowest(marks, streams, begun_ms)
            if found > self.closed.get(query, NO_MARK):
                self.closed[query] = found
