"""Queues of split nodes with an emulated capacity: the unread part of the log, by stream.

A split node reads its streams in the order of the log, so many records as its capacity allows.
Streams with records beyond that are delayed: the offset has the position up to which each is read.
A redirected stream takes its position along, so its records are read once and in their order.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from controlplane.wire.log.values import position_key
from controlplane.wire.routing.table import RoutingTable

# A batch after a longer pause reads no more than this many seconds allow.
MAX_ELAPSED_MS: Final = 30_000
# What counts as the time before the first batch.
FIRST_MS: Final = 1_000


class QueuedEntry(NamedTuple):
    """An unread entry of a stream: its position and its number of records."""

    stream: int
    position: str
    records: int


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues at the end of a batch.

    `delayed`: the position up to which a stream is read, for streams that are read less far than
    the log's position of the batch; `credit`: records that a split node with a queue may still
    read, less than its next entry has.
    """

    delayed: Mapping[int, str] = field(default_factory=dict)
    credit: Mapping[int, float] = field(default_factory=dict)


NO_QUEUES: Final = Queues()


# Returns the unread entries of streams after their starts: so many that they exceed a limit.
ReadEntries = Callable[[Mapping[int, str], float], Mapping[int, Sequence[tuple[str, int]]]]


def queues_after(
    before: Queues,
    position: str,
    table: RoutingTable,
    read_entries: ReadEntries,
    elapsed_ms: int | None,
    most: float,
) -> Queues:
    """Return the queues after a batch, which begins at `position` of the log.

    `elapsed_ms`: since the batch before, None for the first. `most`: records of a batch, which
    split nodes without an emulated capacity share if streams are still delayed.
    """
    if not table.split_emulated and not before.delayed:
        return Queues()
    by_split: dict[int, dict[int, str]] = {}
    for stream, split in table.splits.items():
        by_split.setdefault(split, {})[stream] = before.delayed.get(stream, position)
    elapsed = FIRST_MS if elapsed_ms is None else min(elapsed_ms, MAX_ELAPSED_MS)
    capacity = table.split_capacity if table.split_emulated else math.inf
    rate = min(capacity * elapsed / 1000, most / max(1, len(by_split)))
    delayed: dict[int, str] = {}
    credit: dict[int, float] = {}
    for split, starts in by_split.items():
        allowed = before.credit.get(split, 0.0) + rate
        entries = [
            QueuedEntry(stream, *entry)
            for stream, row in read_entries(starts, allowed).items()
            for entry in row
        ]
        waiting, left = read_queue(entries, starts, allowed)
        delayed |= waiting
        if waiting:
            credit[split] = round(left, 6)
    return Queues(delayed, credit)


def read_queue(
    entries: Sequence[QueuedEntry], starts: Mapping[int, str], allowed: float
) -> tuple[dict[int, str], float]:
    """Return up to where each delayed stream of a split node is read, and the credit that is left.

    `entries`: unread entries of its streams, at least so many that they exceed `allowed` if there
    are that many; `starts`: up to where each stream was read before. Entries of one append have one
    position, and are read together. An empty queue leaves no credit.
    """
    at_position: dict[str, int] = {}
    for entry in entries:
        at_position[entry.position] = at_position.get(entry.position, 0) + entry.records
    end, left = "", allowed
    for position in sorted(at_position, key=position_key):
        if at_position[position] > left:
            break
        left -= at_position[position]
        end = position
    reached = position_key(end) if end else (-1, 0)
    unread = {entry.stream for entry in entries if position_key(entry.position) > reached}
    delayed = {
        stream: max(starts[stream], end or starts[stream], key=position_key) for stream in unread
    }
    return delayed, left if unread else 0.0
