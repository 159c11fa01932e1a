"""Queues of split nodes with an emulated capacity: the unread part of the log, by stream.

A split node reads its streams in the order of the log, so many records as its capacity allows.
Streams with records beyond that are delayed: the offset has the position up to which each is read.
A redirected stream takes its position along, so its records are read once and in their order.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from controlplane.wire.log.values import position_key
from controlplane.wire.routing.table import RoutingTable
from workers.pipeline.sources.cut import LogCut

# A batch after a longer pause reads no more than this many seconds allow.
MAX_ELAPSED_MS: Final = 30_000
# What counts as the time before the first batch.
FIRST_MS: Final = 1_000


class QueuedEntry(NamedTuple):
    """An unread entry of a stream: its position, its number of records, and the part it keeps."""

    stream: int
    position: str
    records: int
    kept: float = 1.0


# No record is dropped.
EVERYTHING: Final[Mapping[int, float]] = MappingProxyType({})


# Returns the unread entries of streams after their starts: so many that they exceed a limit.
ReadEntries = Callable[[Mapping[int, str], float], Mapping[int, Sequence[tuple[str, int]]]]


def queued(
    before: LogCut,
    end: LogCut,
    table: RoutingTable,
    read_entries: ReadEntries,
    elapsed_ms: int | None,
    most: float,
    kept: Mapping[int, float] = EVERYTHING,
) -> LogCut:
    """Return the cut at the end of a batch with the queues of split nodes, which end at `end`.

    `elapsed_ms`: since the batch before, None for the first. `most`: records of a batch, which
    split nodes without an emulated capacity share if streams are still delayed. `kept`: the part of
    a stream's records that its input edge keeps, 1 if absent: others take no capacity.
    """
    if not table.split_emulated and not before.delayed:
        return end
    by_split: dict[int, dict[int, str]] = {}
    for stream, split in table.splits.items():
        by_split.setdefault(split, {})[stream] = before.of(stream)
    elapsed = FIRST_MS if elapsed_ms is None else min(elapsed_ms, MAX_ELAPSED_MS)
    capacity = table.split_capacity if table.split_emulated else math.inf
    most /= max(1, len(by_split))
    rate = min(capacity * elapsed / 1000, most)
    delayed: dict[int, str] = {}
    credit: dict[int, float] = {}
    for split, starts in by_split.items():
        allowed = before.credit.get(split, 0.0) + rate
        # Of streams with dropped records, more may be read than the capacity allows.
        limit = allowed if kept.keys().isdisjoint(starts) else max(allowed, most)
        entries = [
            QueuedEntry(stream, *entry, kept.get(stream, 1.0))
            for stream, row in read_entries(starts, limit).items()
            for entry in row
        ]
        waiting, left = read_queue(entries, starts, allowed, limit)
        delayed |= waiting
        if waiting:
            credit[split] = round(left, 6)
    return replace(end, delayed=delayed, credit=credit)


def read_queue(
    entries: Sequence[QueuedEntry],
    starts: Mapping[int, str],
    allowed: float,
    most: float = math.inf,
) -> tuple[dict[int, str], float]:
    """Return up to where each delayed stream of a split node is read, and the credit that is left.

    `allowed`: kept records that it may read; `most`: with those that it drops. `entries`: unread
    entries of its streams, at least so many that they exceed `most` if there are that many;
    `starts`: up to where each stream was read before. Entries of one append have one position, and
    are read together. An empty queue leaves no credit.
    """
    records: dict[str, int] = {}
    cost: dict[str, float] = {}
    for entry in entries:
        records[entry.position] = records.get(entry.position, 0) + entry.records
        cost[entry.position] = cost.get(entry.position, 0) + entry.records * entry.kept
    end, left, count = "", allowed, 0
    for position in sorted(cost, key=position_key):
        count += records[position]
        if cost[position] > left or (count > most and end):
            left = min(left, cost[position])
            break
        left -= cost[position]
        end = position
    reached = position_key(end) if end else (-1, 0)
    unread = {entry.stream for entry in entries if position_key(entry.position) > reached}
    delayed = {
        stream: max(starts[stream], end or starts[stream], key=position_key) for stream in unread
    }
    return delayed, left if unread else 0.0
