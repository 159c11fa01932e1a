"""The sources of streams in the driver: their next cuts, and what arrives and waits in them.

A source of the kind `x` is read by the package `x` beside this module: `latest.WATCHER` knows in
the driver how far its partitions reach, and `read.read_ranges` reads ranges in a worker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol

import redis

from controlplane.wire.log.values import StreamBacklog
from controlplane.wire.topics.base import StreamSource
from controlplane.wire.topics.cut import SourceCut
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.sources.lag import (
    SourceArrivals,
    backlog_of,
    status_of,
    unread_of,
    write_status,
)
from workers.pipeline.sources.plan import (
    SourceState,
    message_limit,
    next_cut,
    offsets_of,
    waiting_cut,
)

# Arrivals of a partition count half as much after so long.
_HALF_MS: Final = 60_000


class SourceWatcher(Protocol):
    """Knows in the driver how far the partitions of a source reach."""

    def state(self) -> SourceState:
        """Return what is known; only the first call may wait, up to 10 s."""
        ...

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Let the source know soon that the records before these offsets are read."""
        ...

    def close(self) -> None:
        """End the thread."""
        ...


@dataclass
class SourcePlanner:
    """Plans the cuts of a cluster's sources; one thread for each follows its place.

    `_waiting`: the sources that no query has read yet, which have no backlog. `_seen`: by
    partition of a source where its arrivals are counted from, and its greatest end. `_recent`: when
    the ends of a source were last read, and by partition its end and what has arrived lately.
    """

    cluster: str
    _watchers: dict[int, tuple[StreamSource, SourceWatcher]] = field(default_factory=dict)
    _waiting: set[int] = field(default_factory=set)
    _seen: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    _recent: dict[int, tuple[int, dict[int, tuple[int, float]]]] = field(default_factory=dict)

    def next_cuts(
        self,
        client: "redis.Redis",
        before: Mapping[int, SourceCut],
        table: CompiledTable,
        clock_ms: int,
        records: int,
        max_bytes: int,
    ) -> dict[int, SourceCut]:
        """Return the cuts at the end of the next batch, and store what pages show of the sources.

        `before`: the cuts of the batch before, with what it has read. `records`, `max_bytes`: of
        all sources together.
        """
        sources = table.table.sources
        for stream in self._watchers.keys() - sources.keys():
            self._watchers.pop(stream)[1].close()
            self._forget(stream)
        result, count = {}, max(1, len(sources))
        self._waiting.clear()
        for stream, source in sources.items():
            known = before.get(stream)
            state = self._watcher(stream, source, known).state()
            if known is not None and is_waiting(known, source, table, stream):
                self._waiting.add(stream)
                result[stream] = waiting_cut(known, state)
                continue
            schema = table.table.schemas.get(stream)
            idle_ms = round(schema.idle_after_s * 1000) if schema else 0
            limit = message_limit(records // count, known.size if known else 0, max_bytes // count)
            cut = next_cut(known, state, source, clock_ms, idle_ms, limit)
            if cut is not None:
                result[stream] = cut
        # Numbers of a former declaration would be named wrongly.
        own = {s: cut for s, cut in result.items() if cut.identity == sources[s].identity}
        rows = {s: status_of(own.get(s), watcher.state(), clock_ms, self._arriving(s, clock_ms),
                             is_waiting=s in self._waiting)
                for s, (_, watcher) in self._watchers.items()}  # fmt: skip
        write_status(client, self.cluster, rows)
        return result

    def _arriving(self, stream: int, clock_ms: int) -> dict[int, float]:
        """Return the records that have arrived lately by partition, older ones counting less."""
        ends = self._watchers[stream][1].state().ends
        since_ms, before = self._recent.get(stream, (clock_ms, {}))
        kept = 0.5 ** ((clock_ms - since_ms) / _HALF_MS)
        now = {}
        for number, (_, end) in ends.items():
            last, count = before.get(number, (end, 0.0))
            now[number] = end, count * kept + max(0, end - last)
        self._recent[stream] = clock_ms, now
        return {number: count for number, (_, count) in now.items()}

    def _forget(self, stream: int) -> None:
        self._seen.pop(stream, None)
        self._recent.pop(stream, None)

    def behind(self, cuts: Mapping[int, SourceCut], clock_ms: int) -> dict[int, StreamBacklog]:
        """Return the backlogs after cuts by stream, without empty ones."""
        followed = self._watchers.keys() - self._waiting
        known = {s: backlog_of(cut, self._watchers[s][1].state(), clock_ms)
                 for s, cut in cuts.items() if s in followed}  # fmt: skip
        return {stream: backlog for stream, backlog in known.items() if backlog is not None}

    def arrivals(self, cuts: Mapping[int, SourceCut]) -> dict[int, SourceArrivals]:
        """Return what has arrived in sources, and what is unread after cuts, by stream."""
        result = {}
        for stream, cut in cuts.items():
            if stream in self._watchers:
                ends = self._watchers[stream][1].state().ends
                unread = sum(unread_of(p, ends.get(n)) for n, p in cut.partitions.items())
                unread = 0 if stream in self._waiting else unread
                total = self._arrived(stream, ends)
                result[stream] = SourceArrivals(total, unread, cut.newest_ms())
        return result

    def _arrived(self, stream: int, ends: Mapping[int, tuple[int, int]]) -> int:
        """Return how many records have arrived since the first ends, which never falls.

        All records of a partition that was added since have arrived.
        """
        seen = self._seen.setdefault(stream, {})
        is_first = not seen
        for number, (first, end) in ends.items():
            start, greatest = seen.get(number, (end if is_first else first, end))
            seen[number] = start, max(greatest, end)
        return sum(greatest - start for start, greatest in seen.values())

    def commit(self, cuts: Mapping[int, SourceCut]) -> None:
        """Let the sources know soon how far a finished batch has read them."""
        for stream, cut in cuts.items():
            source, watcher = self._watchers.get(stream, (None, None))
            if source is not None and watcher is not None and cut.identity == source.identity:
                watcher.commit(offsets_of(cut.partitions))

    def _watcher(self, stream: int, source: StreamSource, cut: SourceCut | None) -> SourceWatcher:
        """Return what follows a source, and numbers topics as its cut does."""
        topics = cut.topics if cut is not None and cut.identity == source.identity else ()
        known = self._watchers.get(stream)
        if known is not None:
            if known[0] == source and known[1].state().topics[: len(topics)] == topics:
                return known[1]
            known[1].close()
            if known[0].identity != source.identity:
                self._forget(stream)
        watcher: SourceWatcher = module_of(source, "latest").WATCHER(
            source, self.cluster, stream, topics
        )
        self._watchers[stream] = source, watcher
        return watcher


def is_waiting(cut: SourceCut, source: StreamSource, table: CompiledTable, stream: int) -> bool:
    """Return whether no query has read a source yet: the first one starts where it is declared."""
    is_same = cut.identity == source.identity
    return is_same and cut.is_unread and stream not in table.readers_of_stream


def module_of(source: StreamSource, name: str) -> Any:
    """Return a module of a kind of source; a process loads the clients that it needs only."""
    return import_module(f"workers.pipeline.sources.{source.kind}.{name}")


@cache
def planner_of(cluster: str) -> SourcePlanner:
    """Return this process's planner of a cluster's sources."""
    return SourcePlanner(cluster)
