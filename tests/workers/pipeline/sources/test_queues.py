"""Queues of split nodes with an emulated capacity."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.wire.log.values import START, position_key
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import AssignStream, SetSplitCapacity
from controlplane.wire.routing.table import RoutingDelta, RoutingTable
from workers.pipeline.sources.cut import LogCut
from workers.pipeline.sources.log.queues import MAX_ELAPSED_MS, QueuedEntry, queued, read_queue

MANY = 1e9
BEGIN = LogCut(START, 0)


def table(capacity: float, splits: Mapping[int, int], emulated: bool = True) -> RoutingTable:
    assigned: list[Action] = [AssignStream(stream, split) for stream, split in splits.items()]
    actions = (SetSplitCapacity(capacity, emulated), *assigned)
    return RoutingTable().apply(RoutingDelta(1, actions))


def entries(*rows: tuple[int, str, int]) -> list[QueuedEntry]:
    return [QueuedEntry(*row) for row in rows]


@dataclass
class Records:
    """A log: entries by stream, in the order of their positions."""

    by_stream: dict[int, list[tuple[str, int]]] = field(default_factory=dict)
    end: LogCut = BEGIN

    def append(self, stream: int, position: str, records: int) -> None:
        self.by_stream.setdefault(stream, []).append((position, records))
        self.end = LogCut(position, self.end.total + records)

    def unread(
        self, starts: Mapping[int, str], most: float
    ) -> Mapping[int, Sequence[tuple[str, int]]]:
        """Return all unread entries up to the end; more than `most` do no harm."""
        assert most >= 0
        return {
            stream: [
                row
                for row in self.by_stream.get(stream, [])
                if position_key(start) < position_key(row[0]) <= position_key(self.end.position)
            ]
            for stream, start in starts.items()
        }


def test_a_queue_is_read_in_the_order_of_the_log_as_far_as_the_capacity_allows() -> None:
    """Also over its streams: the one that came first is read first."""
    queue = entries((1, "10-0", 4), (2, "11-0", 3), (1, "12-0", 5), (2, "13-0", 1))
    assert read_queue(queue, {1: "9-0", 2: "9-0"}, 8) == ({1: "11-0", 2: "11-0"}, 1)
    assert read_queue(queue, {1: "9-0", 2: "9-0"}, 12) == ({2: "12-0"}, 0)
    assert read_queue(queue, {1: "9-0", 2: "9-0"}, 13) == ({}, 0.0)
    assert read_queue([], {1: "9-0"}, 5) == ({}, 0.0), "an empty queue saves nothing up"


def test_entries_of_one_append_are_read_together() -> None:
    """A position ends a stream's range only as a whole."""
    queue = entries((1, "10-0", 4), (2, "10-0", 4))
    assert read_queue(queue, {1: "9-0", 2: "9-0"}, 7) == ({1: "9-0", 2: "9-0"}, 7)
    assert read_queue(queue, {1: "9-0", 2: "9-0"}, 8) == ({}, 0.0)


def test_a_stream_that_was_redirected_ahead_of_its_new_queue_never_steps_back() -> None:
    queue = entries((1, "10-0", 9), (2, "20-0", 2))
    assert read_queue(queue, {1: "9-0", 2: "19-0"}, 5) == ({1: "9-0", 2: "19-0"}, 5)


def test_a_split_node_below_its_capacity_has_no_queue() -> None:
    log = Records()
    log.append(1, "10-0", 100)
    assert queued(BEGIN, log.end, table(100, {1: 0}), log.unread, 1_000, MANY) == log.end


def test_an_entry_larger_than_a_batch_allows_waits_until_credit_suffices() -> None:
    log = Records()
    log.append(1, "10-0", 100)
    cut, batches = BEGIN, 0
    while batches == 0 or cut.delayed:
        cut = queued(cut, log.end, table(30, {1: 0}), log.unread, 1_000, MANY)
        batches += 1
        assert batches < 9
    assert batches == 4
    assert cut.credit == {}, "the rest is not saved up"


def test_a_long_pause_allows_no_more_than_half_a_minute_and_no_more_than_a_batch_may_have() -> None:
    log = Records()
    for second in range(1_000):
        log.append(1, f"{second}-1", 1)
    full = table(10, {1: 0})
    paused = queued(BEGIN, log.end, full, log.unread, 100 * MAX_ELAPSED_MS, MANY)
    assert paused.delayed == {1: "299-1"}
    small = queued(BEGIN, log.end, full, log.unread, 100 * MAX_ELAPSED_MS, 50)
    assert small.delayed == {1: "49-1"}


def test_a_queue_empties_batch_by_batch_once_nothing_is_emulated() -> None:
    """The limit of records of a batch holds then too."""
    log = Records()
    for second in range(100):
        log.append(1, f"{second}-1", 1)
    free = table(10, {1: 0}, emulated=False)
    cut = queued(replace(log.end, delayed={1: "9-1"}), log.end, free, log.unread, 1_000, 60)
    assert cut.delayed == {1: "69-1"}
    assert queued(cut, log.end, free, log.unread, 1_000, 60) == log.end


def test_records_that_are_dropped_take_no_capacity() -> None:
    """A quarter of stream 1 is kept: so four times as many of its records are read."""
    queue = [QueuedEntry(1, f"{n}-0", 4, 0.25) for n in range(10)] + entries((2, "4-0", 2))
    assert read_queue(queue, {1: "0-0", 2: "0-0"}, 6, MANY) == ({1: "3-0", 2: "3-0"}, 2)
    assert read_queue(queue, {1: "0-0", 2: "0-0"}, 7, MANY) == ({1: "4-0"}, 0)
    none = [QueuedEntry(1, f"{n}-0", 4, 0.0) for n in range(10)]
    assert read_queue(none, {1: "0-0"}, 0, MANY) == ({}, 0.0)


def test_a_batch_reads_no_more_records_however_many_are_dropped() -> None:
    """And saves up no more than the next entry takes."""
    log = Records()
    for second in range(1, 101):
        log.append(1, f"{second}-1", 10)
    full, kept = table(1_000, {1: 0}), {1: 0.1}
    cut = queued(BEGIN, log.end, full, log.unread, 1_000, 50, kept)
    assert cut == replace(log.end, delayed={1: "5-1"}, credit={0: 1.0})
    assert queued(BEGIN, log.end, full, log.unread, 1_000, MANY, kept) == log.end
    slow = queued(BEGIN, log.end, table(20, {1: 0}), log.unread, 1_000, MANY, kept)
    assert slow.delayed == {1: "20-1"}


@pytest.mark.parametrize("capacity", [1, 7, 50])
@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(1, 4), st.integers(1, 20)), max_size=4),
            st.dictionaries(st.integers(1, 4), st.integers(0, 2), max_size=2),
            st.integers(0, 2_000),
        ),
        max_size=12,
    )
)
def test_each_record_is_read_once_and_in_order_under_any_redirects(
    capacity: int,
    steps: list[tuple[list[tuple[int, int]], dict[int, int], int]],
) -> None:
    """Ranges of a stream join without a gap; what split nodes read stays within the capacity."""
    log, cut = Records(), BEGIN
    owners = dict.fromkeys(range(1, 5), 0)
    read: dict[int, list[str]] = {stream: [] for stream in owners}
    clock = 0
    for appended, redirected, elapsed in [*steps, *[([], {}, 60_000)] * 400]:
        for stream, records in appended:
            clock += 1
            log.append(stream, f"{clock}-0", records)
        owners |= redirected
        after = queued(cut, log.end, table(capacity, owners), log.unread, elapsed, MANY)
        taken = dict.fromkeys(owners.values(), 0)
        for stream, split in owners.items():
            start = position_key(cut.of(stream))
            end = position_key(after.of(stream))
            assert start <= end
            new = [
                row for row in log.by_stream.get(stream, []) if start < position_key(row[0]) <= end
            ]
            read[stream] += [row[0] for row in new]
            taken[split] += sum(row[1] for row in new)
        for split, records in taken.items():
            allowed = capacity * min(elapsed, MAX_ELAPSED_MS) / 1_000
            assert records <= cut.credit.get(split, 0) + allowed + 1e-6
        cut = after
        if not cut.delayed and not appended and elapsed == 60_000:
            break
    assert cut.delayed == {}
    assert read == {s: [row[0] for row in log.by_stream.get(s, [])] for s in owners}
