"""Cuts of a topic: the watermark of its partitions, and what a batch takes of each."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from controlplane.wire.log.values import START
from controlplane.wire.routing.cluster_actions import AssignPartition
from controlplane.wire.routing.table import RoutingDelta, RoutingTable
from controlplane.wire.topics.cut import PartitionPosition, SourceCut, combined_ms
from controlplane.wire.topics.places import STRIDE, Place, numbers_of
from controlplane.wire.topics.source import TopicSource
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.sources import planner as planning
from workers.pipeline.sources.cluster_sources import ClusterSources
from workers.pipeline.sources.cut import Cut, LogCut
from workers.pipeline.sources.lag import backlog_of, status_of
from workers.pipeline.sources.plan import (
    PartitionState,
    SourceRanges,
    SourceState,
    message_limit,
    next_cut,
    partition_state,
    parts_of,
    shares,
    waiting_cut,
)
from workers.pipeline.sources.planner import SourcePlanner
from workers.pipeline.split_nodes.partition import open_splits

SOURCE = TopicSource("broker:9092", "orders")
NEW = SourceState({0: (0, 10), 1: (3, 3)}, {0: 0, 1: 3})


def position(offset: int, ms: int | None = None, active_ms: int = 0) -> PartitionPosition:
    return PartitionPosition(offset, ms, active_ms=active_ms)


def test_the_watermark_is_the_least_of_the_partitions_that_are_not_idle() -> None:
    partitions = {0: position(5, 700, 90), 1: position(5, 300, 80), 2: position(5, 900, 100)}
    assert combined_ms(None, partitions, {0}, 100, 50) == 300
    assert combined_ms(None, partitions, {0}, 140, 50) == 700
    assert combined_ms(None, partitions, {1}, 900, 50) == 300, "a lagging partition is not idle"
    assert combined_ms(None, partitions, set(), 900, 50) == 900, "nothing else comes"
    assert combined_ms(800, partitions, {1}, 900, 50) == 800, "it never falls"


def test_a_partition_without_a_record_holds_the_watermark_until_it_is_idle() -> None:
    partitions = {0: position(5, 700, 100), 1: position(0, None, 100)}
    assert combined_ms(None, partitions, set(), 120, 50) is None
    assert combined_ms(None, partitions, {0}, 200, 50) == 700


@pytest.mark.parametrize("seed", range(20))
def test_shares_use_the_limit_and_give_no_partition_less_than_its_equal_part(seed: int) -> None:
    rng = np.random.default_rng(seed)
    unread = {n: int(rng.integers(1, 200)) for n in range(int(rng.integers(1, 9)))}
    limit = int(rng.integers(0, 700))
    taken = shares(unread, limit, dict.fromkeys(unread, 0))
    assert sum(taken.values()) == min(limit, sum(unread.values()))
    for number, count in unread.items():
        assert min(count, limit // len(unread)) <= taken.get(number, 0) <= count


def test_every_partition_is_read_though_a_batch_has_fewer_messages_than_there_are() -> None:
    """Else one with more unread messages than the others would hold the watermark for ever."""
    cut: SourceCut | None = SourceCut(SOURCE.identity, {n: position(0) for n in range(3)})
    state = SourceState({0: (0, 900), 1: (0, 100), 2: (0, 100)}, {})
    for batch in range(1, 4):
        cut = next_cut(cut, state, SOURCE, 10 * batch, 1000, 2)
    assert cut is not None
    assert all(place.offset for place in cut.partitions.values())


def test_the_first_cut_places_the_partitions_and_the_next_one_reads() -> None:
    placed = next_cut(None, NEW, SOURCE, 50, 1000, 4)
    assert placed is not None
    assert {n: p.offset for n, p in placed.partitions.items()} == {0: 0, 1: 3}
    read = next_cut(placed, NEW, SOURCE, 60, 1000, 4)
    assert read is not None
    assert {n: p.offset for n, p in read.partitions.items()} == {0: 4, 1: 3}
    assert read.records_since(placed) == 4
    assert read.records_since(None) == 0
    assert SourceCut.from_json(read.to_json()) == read


def test_nothing_changes_without_messages_and_without_an_answer() -> None:
    assert next_cut(None, SourceState(error="away"), SOURCE, 50, 1000, 4) is None
    cut = SourceCut(SOURCE.identity, {0: position(10), 1: position(3)})
    assert next_cut(cut, NEW, SOURCE, 60, 1000, 4) is cut
    assert next_cut(cut, SourceState(error="away"), SOURCE, 60, 1000, 4) is cut


def test_a_topic_is_idle_once_all_of_its_partitions_are() -> None:
    """Joins then wait for it no longer, whatever the timestamps of its messages are."""
    cut = SourceCut(SOURCE.identity, {0: position(10, 5, 100), 1: position(3, 7, 300)}, mark_ms=5)
    assert next_cut(cut, NEW, SOURCE, 1300, 1000, 4) == replace(cut, mark_ms=7)
    idle = next_cut(cut, NEW, SOURCE, 1301, 1000, 4)
    assert idle == replace(cut, mark_ms=7, is_active=False)
    assert next_cut(idle, NEW, SOURCE, 9999, 1000, 4) is idle


@pytest.mark.parametrize("known", [SourceState({}, {}, "away"), SourceState()])
def test_no_partition_becomes_idle_while_its_place_does_not_answer(known: SourceState) -> None:
    """What is unread then is not known, also after a restart."""
    cut = SourceCut(SOURCE.identity, {0: position(10, 5, 100), 1: position(3, 7, 300)}, mark_ms=5)
    assert next_cut(cut, known, SOURCE, 9999, 1000, 4) is cut
    after = next_cut(cut, replace(known, starts={}, error=""), SOURCE, 9999, 1000, 4)
    assert after == replace(cut, mark_ms=7, is_active=False)


def test_the_count_of_arrivals_never_falls_and_has_each_record_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither while the topic is away, nor if one is deleted or added with old offsets."""
    watcher: Any = SimpleNamespace(answer=SourceState())
    watcher.state = lambda: watcher.answer
    latest = SimpleNamespace(WATCHER=lambda *_: watcher)
    monkeypatch.setattr(planning, "module_of", lambda source, name: latest)
    planner, cut = SourcePlanner("c"), SourceCut(SOURCE.identity)
    planner._watcher(7, SOURCE, None)
    totals = []
    for ends in (
        {}, {0: (5, 1000)}, {0: (6, 1010)}, {}, {0: (6, 1012)}, {0: (6, 1012), 1: (900, 930)},
        {1: (920, 931)}, {0: (0, 2), 1: (920, 931)},
    ):  # fmt: skip
        watcher.answer = SourceState(ends, {})
        totals.append(planner.arrivals({7: cut})[7].total)
    assert totals == [0, 0, 10, 10, 12, 42, 43, 43]


def test_arrivals_of_a_partition_count_half_after_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watcher: Any = SimpleNamespace(answer=None, close=lambda: None)
    watcher.state = lambda: watcher.answer
    latest = SimpleNamespace(WATCHER=lambda *_: watcher)
    monkeypatch.setattr(planning, "module_of", lambda source, name: latest)
    planner = SourcePlanner("c")
    planner._watcher(7, SOURCE, None)
    found = []
    for clock_ms, ends in ((0, (50, 10)), (1, (58, 10)), (60_001, (58, 20)), (120_001, (60, 0))):
        watcher.answer = SourceState({n: (0, end) for n, end in enumerate(ends)}, {})
        found.append(planner._arriving(7, clock_ms))
    assert found == [{0: 0, 1: 0}, {0: 8, 1: 0}, {0: 4, 1: 10}, {0: 4, 1: 5}]
    rows = status_of(SourceCut(SOURCE.identity, {1: position(9)}), watcher.answer, 9, found[-1])
    assert [(row["number"], row["recent"]) for row in rows["partitions"]] == [(1, 5)]
    monkeypatch.setattr(watcher, "state", lambda: SourceState({0: (0, 70)}, {}))
    planner._watcher(7, replace(SOURCE, topic="other"), None)
    assert planner._arriving(7, 120_002) == {0: 0}, "another topic begins again"


def test_another_topic_begins_again() -> None:
    cut = SourceCut("other:9092/orders", {0: position(10)})
    assert next_cut(cut, NEW, SOURCE, 60, 1000, 4) == next_cut(None, NEW, SOURCE, 60, 1000, 4)


@pytest.mark.parametrize(
    ("former", "topics", "offsets", "mark_ms"),
    [
        ("broker:9092/~orders-(eu|us)", ("orders-us", "orders-eu"), [9, 8, 3], 30),
        ("broker:9092/orders-us", (), [1, 8, 3], 30),
        ("other:9092/~orders-(eu|us)", ("orders-us", "orders-eu"), [1, 2, 3], None),
    ],
)
def test_a_changed_pattern_continues_where_its_topics_are_read(
    former: str, topics: tuple[str, ...], offsets: list[int], mark_ms: int | None
) -> None:
    """The consumer group has the offsets of a batch before; the watermark stays."""
    read = {index * STRIDE: position(8 + index, 40) for index in range(max(1, len(topics)))}
    before = SourceCut(former, read, 30, topics=topics)
    source = TopicSource("broker:9092", topic_pattern="orders-.*")
    names = ("orders-eu", "orders-us", "orders-x")
    state = SourceState(starts={0: 1, STRIDE: 2, 2 * STRIDE: 3}, topics=names)
    assert next_cut(before, SourceState(error="away"), source, 60, 1000, 4) is before
    placed = next_cut(before, state, source, 60, 1000, 4)
    assert placed is not None
    assert [place.offset for _, place in sorted(placed.partitions.items())] == offsets
    assert (placed.mark_ms, placed.topics) == (mark_ms, names)


def test_an_added_partition_is_placed_at_its_first_message() -> None:
    cut = SourceCut(SOURCE.identity, {0: position(10)})
    grown = next_cut(cut, NEW, replace(SOURCE, start="latest"), 60, 1000, 4)
    assert grown is not None
    assert grown.partitions[1] == position(3, active_ms=60)._replace(added_ms=60)
    ends = NEW.ends[1]
    assert partition_state(grown.partitions[1], ends, 61) is PartitionState.ADDED
    assert partition_state(grown.partitions[1], ends, 3_600_060) is PartitionState.READ
    assert partition_state(grown.partitions[0], NEW.ends[0], 61) is PartitionState.READ
    assert not any(part.ranges for part in parts_of(7, "g", cut, grown, {0: 0, 1: 0}, 0).values())


@pytest.mark.parametrize(
    ("offset", "state", "skipped"), [(1, PartitionState.LOST, 7), (20, PartitionState.RECREATED, 3)]
)
def test_a_partition_whose_messages_are_gone_stops_or_is_skipped_as_declared(
    offset: int, state: PartitionState, skipped: int
) -> None:
    cut = SourceCut(SOURCE.identity, {0: position(offset, 5), 1: position(3, 9)}, mark_ms=5)
    ends = SourceState({0: (3, 10), 1: (3, 3)}, {0: 3})
    assert partition_state(cut.partitions[0], ends.ends[0]) is state
    assert next_cut(cut, ends, SOURCE, 900, 1, 4) is cut, "its watermark is held, too"
    following = next_cut(cut, ends, replace(SOURCE, on_loss="skip"), 900, 1, 4)
    assert following is not None
    assert following.partitions[0].offset == skipped
    row, _ = status_of(cut, ends, 900)["partitions"]
    assert (row["state"], bool(row["line"])) == (state, True)
    assert row["lost"] == (2 if state is PartitionState.LOST else 0)


def ranges_of(
    before: SourceCut, end: SourceCut, table: CompiledTable, splits: Sequence[int],
    *, is_skipped: bool = False,
) -> dict[int, list[SourceRanges]]:  # fmt: skip
    """Return what split nodes read of the source of stream 7."""
    log: Any = None
    first, last = (Cut(LogCut(START, 0), {7: cut}) for cut in (before, end))
    ranges = ClusterSources("c", log, log).ranges(
        first, last, table, splits, 0, is_skipped=is_skipped, attempt=1
    )
    return {split: own.sources for split, own in ranges.items()}


def test_a_source_that_waits_stays_but_behind_what_is_gone() -> None:
    """Also behind one that was created again; what it passes is no batch's."""
    ends = SourceState({0: (100, 200)})
    for offset, moved in ((0, 100), (150, 150), (300, 100)):
        cut = SourceCut(SOURCE.identity, {0: position(offset), 1: position(3)})
        waiting = waiting_cut(cut, ends)
        assert waiting == replace(cut, partitions={0: position(moved), 1: position(3)})
        rows = status_of(waiting, ends, 9, is_waiting=True)["partitions"]
        assert {row["unread"] for row in rows} == {0}
        table = CompiledTable(RoutingTable(sources={7: SOURCE}, splits={7: 0}))
        (part,) = ranges_of(cut, waiting, table, [0])[0]
        assert (part.ranges, part.cut) == ([], waiting.to_json())


def test_partitions_go_round_all_split_nodes_but_those_that_are_assigned() -> None:
    """The split node of the stream alone carries the cut, also if it reads no partition."""
    read = position(0)._replace(appended_ms=1)
    before = SourceCut(SOURCE.identity, dict.fromkeys(range(5), read))
    places = {n: read._replace(offset=n) for n in range(5)}
    end = SourceCut(SOURCE.identity, places, mark_ms=9)
    wide = RoutingTable(sources={7: SOURCE}, splits={7: 2}, split_count=3)
    moved = wide.apply(RoutingDelta(1, (AssignPartition(7, 3, 0), AssignPartition(7, 2, 3))))
    back = moved.apply(RoutingDelta(2, (AssignPartition(7, 2), AssignPartition(7, 3))))
    assert back.partitions == {}
    one = RoutingTable(sources={7: SOURCE}, splits={7: 0}, split_count=1)
    for table, wanted in (
        (wide, {2: [3], 0: [1, 4], 1: [2]}), (back, {2: [3], 0: [1, 4], 1: [2]}),
        (moved, {0: [1, 3, 4], 2: [], 3: [2]}), (one, {0: [1, 2, 3, 4]}),
    ):  # fmt: skip
        compiled, first = CompiledTable(RoutingTable.from_json(table.to_json())), table.splits[7]
        splits = open_splits(compiled, 9, {7: end, 8: end})
        every = ranges_of(before, end, compiled, splits)
        parts = {split: part for split, own in every.items() for part in own}
        assert {s: [i.partition for i in part.ranges] for s, part in parts.items()} == wanted
        assert [s for s, part in parts.items() if part.is_marked] == [first]
        assert [s for s, part in parts.items() if part.cut is not None] == [first]
        skipped = ranges_of(before, end, compiled, splits, is_skipped=True)
        assert {s: [p.ranges for p in own] for s, own in skipped.items() if own} == {first: [[]]}


def test_the_first_partitions_of_topics_of_a_pattern_go_round_too() -> None:
    assignment = RoutingTable(splits={7: 0}, split_count=2).assignment
    assert [assignment.of(7, STRIDE * topic) for topic in range(4)] == [0, 1, 0, 1]


def test_partitions_of_a_topic_that_appears_later_have_numbers_of_their_own() -> None:
    """And are read from their first message; a pattern that matches nothing yet is placed."""
    source = TopicSource("broker:9092", topic_pattern="shop-.*", start="latest")
    placed = next_cut(None, SourceState(starts={}), source, 50, 1000, 4)
    assert placed == SourceCut(source.identity)
    topics = ("shop-b", "shop-a")
    (first,) = numbers_of(topics, [Place("shop-a", 3)]).values()
    state = SourceState({3: (2, 9), first: (0, 1)}, {}, topics=topics)
    grown = next_cut(placed, state, source, 60, 1000, 4)
    assert grown is not None
    assert {n: (p.offset, p.added_ms) for n, p in grown.partitions.items()} == {
        3: (2, 60), first: (0, 60),
    }  # fmt: skip
    assert SourceCut.from_json(grown.to_json()) == grown
    read = next_cut(grown, state, source, 70, 1000, 8)
    assert read is not None
    parts = parts_of(7, "g", grown, read, {3: 0, first: 1}, 0)
    ranges = [(s, item.topic, item.partition) for s, part in parts.items() for item in part.ranges]
    assert ranges == [(0, "shop-b", 3), (1, "shop-a", first)]
    row = status_of(read, state, 70)["partitions"][1]
    assert (row["topic"], row["partition"], row["state"]) == ("shop-a", 3, "added")


def test_a_batch_is_limited_by_the_bytes_of_its_messages() -> None:
    assert message_limit(50_000, 0, 1 << 20) == 1_000
    assert message_limit(50_000, 1 << 10, 1 << 20) == 1_024
    assert message_limit(500, 10, 1 << 20) == 500
    assert message_limit(500, 1 << 30, 1 << 20) == 1


def test_the_backlog_is_counted_after_what_the_broker_still_has() -> None:
    cut = SourceCut(SOURCE.identity, {0: position(1)._replace(appended_ms=70), 1: position(3)})
    backlog = backlog_of(cut, SourceState({0: (3, 10), 1: (3, 3)}), 100)
    assert backlog == (7, 70)
    assert backlog_of(cut, SourceState({0: (0, 1), 1: (3, 3)}), 100) is None
