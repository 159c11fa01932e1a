"""All sources of a cluster: the cuts of the next batch in the driver, their records in workers.

A source of the kind `x` is read by the package `x` beside this module: `latest.WATCHER` knows in
the driver how far its partitions reach, and `read.read_ranges` reads ranges in a worker.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol

import redis

from controlplane.wire.attempts import FAILURES
from controlplane.wire.log.values import NO_TIME, LogEntry, StreamBacklog
from controlplane.wire.routing.drop_rules import INPUT
from controlplane.wire.topics.base import StreamSource
from controlplane.wire.topics.cut import SourceCut
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.shedding.drops import LadderDrops
from workers.pipeline.sources.entries import entries_of
from workers.pipeline.sources.lag import (
    SourceArrivals,
    backlog_of,
    status_of,
    unread_of,
    write_status,
)
from workers.pipeline.sources.plan import (
    SourceRanges,
    SourceState,
    message_limit,
    next_cut,
    offsets_of,
    parts_of,
    waiting_cut,
)
from workers.pipeline.split_nodes.projection import DeadLetterBuffer

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
            if known is not None and _is_waiting(known, source, table, stream):
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


def _is_waiting(cut: SourceCut, source: StreamSource, table: CompiledTable, stream: int) -> bool:
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


def parts_by_split(
    cluster: str,
    before: Mapping[int, SourceCut],
    end: Mapping[int, SourceCut],
    table: CompiledTable | None,
    splits: Sequence[int],
    *,
    is_skipped: bool = False,
    attempt: int = 1,
) -> dict[int, list[SourceRanges]]:
    """Return what each split node reads of sources between two cuts, by split node."""
    result: dict[int, list[SourceRanges]] = {split: [] for split in splits}
    for stream, cut in end.items():
        source = None if table is None else table.table.sources.get(stream)
        if table is None or source is None:
            continue
        group, first = source.group_of(cluster, stream), table.table.splits[stream]
        # The cut of a source that waits moves only past what is gone.
        has_none = is_skipped or _is_waiting(cut, source, table, stream)
        owners = {n: table.table.assignment.of(stream, n) for n in cut.partitions}
        parts = parts_of(stream, group, before.get(stream), cut, owners, first,
                         is_skipped=has_none)  # fmt: skip
        details = _details(source, cluster, stream, parts.values())
        for split, part in parts.items():
            own = {item.partition: details.get(item.partition) for item in part.ranges}
            result[split].append(part._replace(details=own, is_stuck=attempt > FAILURES))
    return result


def _details(
    source: StreamSource, cluster: str, stream: int, parts: Iterable[SourceRanges]
) -> Mapping[int, Any]:
    """Return by partition what readers of a source need besides the ranges of parts."""
    ranges = [item for part in parts for item in part.ranges]
    find = getattr(module_of(source, "read"), "details_of", None) if ranges else None
    return {} if find is None else find(source, cluster, stream, ranges)


def read_sources(
    parts: Sequence[SourceRanges],
    entries: dict[int, list[LogEntry]],
    table: CompiledTable,
    drops: LadderDrops,
    clock_ms: int,
    dead: DeadLetterBuffer,
) -> tuple[dict[int, list[LogEntry]], dict[str, Any]]:
    """Return the entries of a split node with those of its sources, and the report about these.

    `entries`: those of the log, which for a source has records that were appended again.
    """
    if not parts:
        return entries, {}
    result, reports = dict(entries), dict[str, Any]()
    for part in parts:
        stream = part.stream
        is_needed = (
            stream in table.readers_of_stream
            or (stream, INPUT) in table.table.drop_rules
            or drops.rule((stream, INPUT)) is not None
        )
        source, schema = table.table.sources[stream], table.table.schemas[stream]
        ranges = module_of(source, "read").read_ranges(part, source, schema, clock_ms)
        batch = entries_of(part, ranges, schema, clock_ms, dead, is_needed=is_needed)
        reports[str(stream)] = batch.report
        # The watermark of a source holds for them, too: a closed window stays as it is.
        again = [replace(entry, mark_ms=part.mark_ms, newest_ms=NO_TIME)
                 for entry in result.get(stream, ())]  # fmt: skip
        if every := [*again, *batch.entries[stream]]:
            result[stream] = every
    return result, reports


def cuts_after(
    client: "redis.Redis", cluster: str, cuts: Mapping[int, SourceCut], batch: int
) -> dict[int, SourceCut]:
    """Return the cuts of a batch with what it has read, by its telemetry row.

    As they are if Redis has lost the row: watermarks then continue from what is known.
    """
    # For the driver alone: executors have no pydantic.
    from controlplane.wire.foreign.telemetry import newest_rows  # noqa: PLC0415

    rows = newest_rows(client, cluster, 1)
    if not rows or rows[0].get("batch") != batch:
        return dict(cuts)
    known = rows[0].get("sources", {})
    read = {int(stream): SourceCut.from_json(cut) for stream, cut in known.items()}
    same = {s: cut for s, cut in read.items() if s in cuts and cut.identity == cuts[s].identity}
    return {**cuts, **same}


def cuts_in(sources: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the cuts after a batch as JSON by stream, from the reports of its split nodes."""
    reports = [pair for source in sources for pair in source.get("sources", {}).items()]
    cuts = {stream: dict(report["cut"]) for stream, report in reports if report["cut"]}
    for stream, cut in cuts.items():
        own = [report for name, report in reports if name == stream]
        partitions = [report["partitions"] for report in own]
        cut["partitions"] = {
            **cut["partitions"],
            **{n: p for part in partitions for n, p in part.items()},
        }
        messages = sum(report["messages"] for report in own)
        if messages:
            cut["size"] = max(1, round(sum(report["bytes"] for report in own) / messages))
    return cuts
