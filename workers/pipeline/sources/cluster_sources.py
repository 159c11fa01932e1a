"""All sources of a cluster, its log among them, through one interface: `ClusterSources`.

Each kind is a package beside this module, with `latest` for the driver and `read` for workers. The
log has functions of its own there: one position cuts all its streams, and its entries are made by
producers. Sources of streams share plan, entries and lag (`planner.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import redis

from controlplane.wire.attempts import FAILURES
from controlplane.wire.log.queued import unread_entries
from controlplane.wire.log.redis_log import RedisLog
from controlplane.wire.log.values import NO_TIME, Log, LogEntry, StreamBacklog
from controlplane.wire.routing.drop_rules import INPUT
from controlplane.wire.topics.base import StreamSource
from controlplane.wire.topics.cut import SourceCut
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.shedding.drops import LadderDrops
from workers.pipeline.sources.cut import Cut, LogCut
from workers.pipeline.sources.entries import SourceBatch, entries_of
from workers.pipeline.sources.lag import SourceArrivals
from workers.pipeline.sources.log import latest, queues, read
from workers.pipeline.sources.plan import SourceRanges, parts_of
from workers.pipeline.sources.planner import is_waiting, module_of, planner_of
from workers.pipeline.split_nodes.projection import DeadLetterBuffer


class SplitRanges(NamedTuple):
    """What one split node reads of all sources in one batch.

    `start`, `end`: of the log; `behind`: what is then unread of the sources whose streams are
    assigned to it; `is_skipped`: the batch has no record.
    """

    start: LogCut
    end: LogCut
    sources: list[SourceRanges]
    behind: dict[int, StreamBacklog]
    is_skipped: bool


class ClusterSources(NamedTuple):
    """The log of a cluster and the sources of its streams: planned, divided, read and committed."""

    cluster: str
    client: "redis.Redis"
    log: Log

    def next_cut(
        self,
        before: Cut,
        batch: int,
        table: CompiledTable | None,
        clock_ms: int,
        records: int,
        max_bytes: int,
    ) -> Cut:
        """Return the cut at the end of the next batch, `before` being that of `batch`.

        `records`, `max_bytes`: of the log, and of all other sources together. No stream of the log
        is delayed yet (`delayed`).
        """
        log, sources = latest.next_cut(self.log, before.log, records, max_bytes), before.sources
        if table is not None and (table.table.sources or sources):
            # Half of a batch at least is left to them.
            left = max(records // 2, records - (log.total - before.log.total))
            known = cuts_after(self.client, self.cluster, sources, batch)
            planner = planner_of(self.cluster)
            sources = planner.next_cuts(self.client, known, table, clock_ms, left, max_bytes)
        return Cut(log, sources)

    def delayed(
        self,
        before: Cut,
        end: Cut,
        table: CompiledTable | None,
        elapsed_ms: int | None,
        most: float,
        kept: Mapping[int, float],
    ) -> Cut:
        """Return the cut at the end of a batch with the queues of split nodes (`queues.queued`).

        A log in Kafka has none: a message has records of all streams, so a part costs as much.
        """
        if table is None or not isinstance(self.log, RedisLog):
            return end
        # The log may be in another Redis than the telemetry.
        client = self.log.client

        def unread(starts: Mapping[int, str], count: float) -> Any:
            return unread_entries(client, self.cluster, starts, end.log.position, count)

        log = queues.queued(before.log, end.log, table.table, unread, elapsed_ms, most, kept)
        return replace(end, log=log)

    def arrivals(self, cut: Cut) -> dict[int, SourceArrivals]:
        """Return what has arrived in sources of streams, and what is unread after a cut."""
        return planner_of(self.cluster).arrivals(cut.sources)

    def ranges(
        self,
        before: Cut,
        end: Cut,
        table: CompiledTable | None,
        splits: Sequence[int],
        clock_ms: int,
        *,
        is_skipped: bool,
        attempt: int,
    ) -> dict[int, SplitRanges]:
        """Return what each split node reads between two cuts, by split node."""
        start = end.log if is_skipped else before.log
        result = {split: SplitRanges(start, end.log, [], {}, is_skipped) for split in splits}
        if table is None:
            return result
        behind = planner_of(self.cluster).behind(end.sources, clock_ms)
        for stream, cut in end.sources.items():
            source = table.table.sources.get(stream)
            if source is None:
                continue
            # The cut of a source that waits moves only past what is gone.
            has_none = is_skipped or is_waiting(cut, source, table, stream)
            owners = {n: table.table.assignment.of(stream, n) for n in cut.partitions}
            group, first = source.group_of(self.cluster, stream), table.table.splits[stream]
            parts = parts_of(stream, group, before.sources.get(stream), cut, owners, first,
                             is_skipped=has_none)  # fmt: skip
            details = _details(source, self.cluster, stream, parts.values())
            for split, part in parts.items():
                own = {item.partition: details.get(item.partition) for item in part.ranges}
                stuck = part._replace(details=own, is_stuck=attempt > FAILURES)
                result[split].sources.append(stuck)
            if stream in behind:
                result[first].behind[stream] = behind[stream]
        return result

    def read(
        self,
        ranges: SplitRanges,
        split: int,
        table: CompiledTable,
        drops: LadderDrops,
        clock_ms: int,
        dead: DeadLetterBuffer,
    ) -> tuple[dict[int, list[LogEntry]], dict[str, Any]]:
        """Return the entries of a split node by stream, and the report about them."""
        streams, (start, end) = table.streams_of_split(split), ranges[:2]
        entries, behind = read.read_streams(self.log, streams, start, end)
        reports = dict[str, Any]()
        for part in ranges.sources:
            batch = read_source(part, table, drops, clock_ms, dead)
            reports[str(part.stream)] = batch.report
            # Records that were appended again: the watermark of the source holds for them, too, so
            # a closed window stays as it is.
            again = [replace(entry, mark_ms=part.mark_ms, newest_ms=NO_TIME)
                     for entry in entries.get(part.stream, ())]  # fmt: skip
            if every := [*again, *batch.entries[part.stream]]:
                entries[part.stream] = every
        return entries, {
            "start": start.position, "end": end.position, "behind": behind | ranges.behind,
            "delayed": {s: place for s, place in end.delayed.items() if s in streams},
            "sources": reports, **({"skipped": True} if ranges.is_skipped else {}),
        }  # fmt: skip

    def commit(self, cut: Cut) -> None:
        """Let all sources know how far a finished batch has read them."""
        self.log.mark_committed(cut.log.needed)
        planner_of(self.cluster).commit(cut.sources)


def _details(
    source: StreamSource, cluster: str, stream: int, parts: Iterable[SourceRanges]
) -> Mapping[int, Any]:
    """Return by partition what readers of a source need besides the ranges of parts."""
    ranges = [item for part in parts for item in part.ranges]
    find = getattr(module_of(source, "read"), "details_of", None) if ranges else None
    return {} if find is None else find(source, cluster, stream, ranges)


def read_source(
    part: SourceRanges,
    table: CompiledTable,
    drops: LadderDrops,
    clock_ms: int,
    dead: DeadLetterBuffer,
) -> SourceBatch:
    """Return what a split node reads of the source of a stream."""
    stream = part.stream
    is_needed = (
        stream in table.readers_of_stream
        or (stream, INPUT) in table.table.drop_rules
        or drops.rule((stream, INPUT)) is not None
    )
    source, schema = table.table.sources[stream], table.table.schemas[stream]
    ranges = module_of(source, "read").read_ranges(part, source, schema, clock_ms)
    return entries_of(part, ranges, schema, clock_ms, dead, is_needed=is_needed)


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
