"""The next cut of a source, and the ranges of it that each split node reads."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from controlplane.wire.topics.base import StreamSource
from controlplane.wire.topics.cut import (
    PartitionPosition,
    SourceCut,
    active_partitions,
    combined_ms,
)
from controlplane.wire.topics.places import place_of
from controlplane.wire.topics.source import TopicSource

# Messages of a batch while their size is unknown.
FIRST_MESSAGES: Final = 1_000
# So long a partition that was added to a topic is named as such.
_NEW_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class SourceState:
    """What the place of a source answered last.

    `ends`: by partition the first offset and the end offset; `starts`: where a reader starts, of
    the partitions of the first answer, None before it; `error`: why the newest request failed,
    empty if it did not. `topics`: as of a cut.
    """

    ends: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    starts: Mapping[int, int] | None = None
    error: str = ""
    topics: tuple[str, ...] = ()


class PartitionState(StrEnum):
    """The state of a partition for its reader."""

    READ = "read"
    ADDED = "added"
    LOST = "lost"
    RECREATED = "recreated"
    MISSING = "missing"


class PartitionRange(NamedTuple):
    """The messages [start, stop) of a partition, and its position before them.

    `topic`: of a pattern that of the partition, else empty.
    """

    partition: int
    start: int
    stop: int
    before: PartitionPosition
    topic: str = ""


class SourceRanges(NamedTuple):
    """What one split node reads of a source in one batch.

    `mark_ms`: the watermark of the stream; `is_marked`: whether nodes must get it even without
    records. `cut`: the cut at the end as JSON, at the first split node of the stream only.
    `details`: by partition what the source's reader needs besides the ranges. `is_stuck`: whether
    the batch has failed so often that another attempt alone is pointless.
    """

    stream: int
    group: str
    ranges: Sequence[PartitionRange]
    mark_ms: int | None
    is_marked: bool
    cut: Mapping[str, Any] | None
    details: Any = None
    is_stuck: bool = False


def partition_state(
    place: PartitionPosition, ends: tuple[int, int] | None, clock_ms: int = 0
) -> PartitionState:
    """Return the state of a partition; `ends`: its first offset and its end, None without it.

    `clock_ms`: now, to name partitions that were added in the last hour; 0 names none.
    """
    if ends is None:
        return PartitionState.MISSING
    if place.offset < ends[0]:
        return PartitionState.LOST
    if place.offset > ends[1]:
        return PartitionState.RECREATED
    is_new = place.added_ms and clock_ms - place.added_ms < _NEW_MS
    return PartitionState.ADDED if is_new and clock_ms else PartitionState.READ


def next_cut(
    before: SourceCut | None,
    state: SourceState,
    source: StreamSource,
    clock_ms: int,
    idle_ms: int,
    limit: int,
) -> SourceCut | None:
    """Return the cut at the end of the next batch, `before` if nothing changes.

    `before`, too, until the place of the source has answered. A partition is only placed by its
    first cut, and read by the next ones. Messages that are gone stop their partition, or are
    skipped and counted, as the source declares. `limit`: messages of the batch.
    """
    if before is None or before.identity != source.identity:
        return _first_cut(before, state, source, clock_ms)
    partitions = dict(before.partitions)
    # All messages of a partition that was added since are new.
    added = state.ends.keys() - partitions.keys()
    partitions |= {n: PartitionPosition(state.ends[n][0], active_ms=clock_ms, added_ms=clock_ms)
                   for n in added}  # fmt: skip
    unread, held = _unread(before, state, source)
    for number in _recreated(before, state) - held:
        partitions[number] = partitions[number]._replace(offset=state.ends[number][0])
    read_ms = {number: before.partitions[number].active_ms for number in unread}
    for number, count in shares(unread, limit, read_ms).items():
        place = partitions[number]
        start = max(place.offset, state.ends[number][0])
        partitions[number] = place._replace(offset=start + count, active_ms=clock_ms)
    mark_ms, is_active = _mark(before, state, {*unread, *held}, clock_ms, idle_ms)
    same = (mark_ms, is_active) == (before.mark_ms, before.is_active)
    if same and offsets_of(partitions) == offsets_of(before.partitions):
        return before
    return replace(
        before, partitions=partitions, mark_ms=mark_ms, is_active=is_active, topics=state.topics
    )


def _mark(
    before: SourceCut, state: SourceState, waiting: Collection[int], clock_ms: int, idle_ms: int
) -> tuple[int | None, bool]:
    """Return the watermark, and whether a partition is not idle; `waiting`: those with messages."""
    # Nobody knows what is unread of a place that does not answer: no partition becomes idle.
    if state.error or state.starts is None:
        return before.mark_ms, before.is_active
    mark_ms = combined_ms(before.mark_ms, before.partitions, waiting, clock_ms, idle_ms)
    return mark_ms, bool(active_partitions(before.partitions, waiting, clock_ms, idle_ms))


def _first_cut(
    before: SourceCut | None, state: SourceState, source: StreamSource, clock_ms: int
) -> SourceCut | None:
    """Return the cut that places the partitions of a source, `before` until its place answers."""
    if state.starts is None:
        return before
    kept = {} if before is None else _kept(before, state, source)
    placed = {n: PartitionPosition(offset) for n, offset in state.starts.items()} | kept
    placed = {n: place._replace(active_ms=clock_ms) for n, place in placed.items()}
    mark_ms = before.mark_ms if before is not None and kept else None
    return SourceCut(source.identity, placed, mark_ms, topics=state.topics)


def _kept(
    before: SourceCut, state: SourceState, source: StreamSource
) -> dict[int, PartitionPosition]:
    """Return the positions of partitions that another pattern or topic of the brokers had.

    The consumer group has those of a batch before.
    """
    if not isinstance(source, TopicSource):
        return {}
    names = state.topics or (source.name,)
    former = tuple(name for name in names if source.identity_of(name) == before.identity)
    if before.topics and before.identity.startswith(source.identity_of("")):
        former = before.topics
    known = {place_of(former, n): p for n, p in before.partitions.items()}
    places = {n: place_of(names, n) for n in state.starts or ()}
    return {n: known[place] for n, place in places.items() if place in known}


def waiting_cut(cut: SourceCut, state: SourceState) -> SourceCut:
    """Return the cut of a source that no query has read yet.

    A partition stays where it was placed, or moves to the first message that is still there; if it
    was created again, to its first message.
    """
    places = {n: (place, *state.ends[n]) for n, place in cut.partitions.items() if n in state.ends}
    moved = {n: place._replace(offset=first if place.offset > end else max(place.offset, first))
             for n, (place, first, end) in places.items()}  # fmt: skip
    return replace(cut, partitions={**cut.partitions, **moved})


def _recreated(cut: SourceCut, state: SourceState) -> set[int]:
    return {
        number
        for number, place in cut.partitions.items()
        if partition_state(place, state.ends.get(number)) is PartitionState.RECREATED
    }


def _unread(
    cut: SourceCut, state: SourceState, source: StreamSource
) -> tuple[dict[int, int], set[int]]:
    """Return the unread messages of partitions, and the partitions that lost messages stop."""
    unread, held = dict[int, int](), set[int]()
    for number, place in cut.partitions.items():
        ends = state.ends.get(number)
        known = partition_state(place, ends)
        if known in {PartitionState.LOST, PartitionState.RECREATED} and source.stops_on_loss:
            held.add(number)
        elif ends is not None and ends[1] > place.offset:
            unread[number] = ends[1] - max(place.offset, ends[0])
    return unread, held


def offsets_of(partitions: Mapping[int, PartitionPosition]) -> dict[int, int]:
    """Return the offsets of the first unread messages by partition."""
    return {number: place.offset for number, place in partitions.items()}


def message_limit(records: int, size: int, max_bytes: int) -> int:
    """Return how many messages a batch may read; `size`: mean bytes of a message, 0: unknown."""
    if not size:
        return min(records, FIRST_MESSAGES)
    return min(records, max(1, max_bytes // size))


def shares(unread: Mapping[int, int], limit: int, read_ms: Mapping[int, int]) -> dict[int, int]:
    """Return how many messages of each partition a batch reads, as equal as they can be.

    What a partition does not need is left to the others. Without a limit that is reached, all; with
    one of fewer messages than partitions, those that were not read for the longest.
    """
    if limit < len(unread):
        oldest = sorted(unread, key=lambda number: (read_ms[number], number))[:limit]
        unread = {number: min(1, unread[number]) for number in oldest}
    taken, left = {}, limit
    ordered = sorted(unread, key=lambda number: (unread[number], number))
    for index, number in enumerate(ordered):
        taken[number] = min(unread[number], -(-left // (len(ordered) - index)))
        left -= taken[number]
    return {number: count for number, count in taken.items() if count > 0}


def parts_of(
    stream: int,
    group: str,
    before: SourceCut | None,
    end: SourceCut,
    owners: Mapping[int, int],
    first: int,
    *,
    is_skipped: bool = False,
) -> dict[int, SourceRanges]:
    """Return what each split node reads between two cuts, by split node.

    `owners`: the split node of each partition; `first`: that of the stream, which carries the cut.
    `is_skipped`: the messages are not read.
    """
    known = before if before is not None and before.identity == end.identity else None
    ranges: dict[int, list[PartitionRange]] = {first: []}
    for number, place in sorted(end.partitions.items()):
        begin = None if known is None else known.partitions.get(number)
        if begin is not None and begin.offset < place.offset and not is_skipped:
            topic = place_of(end.topics, number).topic
            item = PartitionRange(number, begin.offset, place.offset, place, topic)
            ranges.setdefault(owners[number], []).append(item)
    is_marked = end.mark_ms is not None and (known is None or known.mark_ms != end.mark_ms)
    return {
        split: SourceRanges(
            stream, group, own, end.mark_ms, is_marked and split == first,
            end.to_json() if split == first else None,
        )
        for split, own in ranges.items()
    }  # fmt: skip
