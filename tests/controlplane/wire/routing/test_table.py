"""Routing tables: deltas, published in order, give the same table to every reader."""

from dataclasses import replace

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from controlplane.wire import keys
from controlplane.wire.errors import InconsistentDelta, RoutingGap, RoutingMissing, RoutingTaken
from controlplane.wire.routing import publication as publishing
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import (
    AssignPartition,
    AssignStream,
    SetLadder,
    SetSource,
    SetSplitCapacity,
)
from controlplane.wire.routing.publication import (
    latest_version,
    publish,
    publish_snapshot,
    read_table,
)
from controlplane.wire.routing.query_actions import (
    AddQuery,
    MoveTasks,
    RemoveQuery,
    RestartQuery,
    SetAggregator,
    SetAggregators,
    SetTaskCount,
)
from controlplane.wire.routing.state_transfer import TaskTransfer, task_transfers, transition_table
from controlplane.wire.routing.table import RoutingDelta, RoutingTable
from controlplane.wire.topics.source import TopicSource
from tests.support.ladders import ladders
from tests.support.texts import SUMMARY_TEXT


def arrival(query: int, node: int = 0) -> AddQuery:
    return AddQuery(query, 0, node, (1, 2), SUMMARY_TEXT)


ops = st.lists(
    st.one_of(
        st.builds(arrival, st.integers(1, 50), st.integers(0, 3)),
        st.builds(AssignStream, st.integers(1, 9), st.integers(0, 1)),
        st.builds(SetSplitCapacity, st.floats(0, 1e6), st.booleans()),
        st.builds(SetLadder, st.none() | ladders()),
    ),
    max_size=8,
    unique_by=lambda op: (type(op), getattr(op, "query", getattr(op, "stream", 0))),
).map(tuple)


@given(ops)
def test_table_and_delta_come_back_from_json(operations: tuple[Action, ...]) -> None:
    """What travels is what was meant."""
    delta = RoutingDelta(1, operations)
    assert RoutingDelta.from_json(delta.to_json()) == delta
    table = RoutingTable().apply(delta)
    assert RoutingTable.from_json(table.to_json()) == table


def test_capacity_of_split_nodes_is_set_and_reverted() -> None:
    before = RoutingTable().apply(RoutingDelta(1, (SetSplitCapacity(20.0, emulated=False),)))
    action = SetSplitCapacity(35.5, emulated=True)
    after = before.apply(RoutingDelta(2, (action,)))
    assert (after.split_capacity, after.split_emulated) == (35.5, True)
    reverted = after.apply(RoutingDelta(3, action.inverse(before.draft())))
    assert reverted == replace(before, version=3)


def test_assignments_of_partitions_end_with_their_source_and_return_with_it() -> None:
    orders = TopicSource("broker:9092", "orders")
    assigned = AssignStream(1, 0), SetSource(1, orders), AssignPartition(1, 3, 1)
    before = RoutingTable().apply(RoutingDelta(1, assigned))
    action = SetSource(1, replace(orders, topic="clicks"))
    after = before.apply(RoutingDelta(2, (action,)))
    assert after.partitions == {}
    reverted = after.apply(RoutingDelta(3, action.inverse(before.draft())))
    assert reverted == replace(before, version=3)
    same = before.apply(RoutingDelta(2, (SetSource(1, replace(orders, group="shop")),)))
    assert same.partitions == before.partitions


def test_move_changes_node_and_run_and_nothing_else() -> None:
    """The streams and the window stay the query's own."""
    table = RoutingTable().apply(RoutingDelta(1, (arrival(5), arrival(6))))
    moved = table.apply(RoutingDelta(2, (RestartQuery(5, 1, 3), RemoveQuery(6))))
    route = moved.queries[5]
    assert (route.node, route.incarnation, route.streams, route.text) == (
        3,
        1,
        (1, 2),
        SUMMARY_TEXT,
    )
    assert set(moved.queries) == {5}
    assert table.queries[5].node == 0, "a table is never changed"


SPREAD = AddQuery(7, 0, 0, (1,), '{"aggregates": {}}', ((0, 0, 3), (1, 3, 5)))


def test_tasks_move_by_intervals_and_the_table_says_who_hands_on() -> None:
    table = RoutingTable().apply(RoutingDelta(1, (arrival(5), SPREAD)))
    assert table.queries[7].owners() == (0, 0, 0, 1, 1)
    delta = RoutingDelta(2, (MoveTasks(7, ((2, 1, 4), (1, 0, 1))), MoveTasks(5, ((3, 0, 1),))))
    moved = table.apply(RoutingDelta.from_json(delta.to_json()))
    assert moved.queries[7].owners() == (1, 2, 2, 2, 1)
    assert moved.queries[7].task_ranges == ((1, 0, 1), (2, 1, 4), (1, 4, 5))
    assert (moved.queries[5].node, moved.queries[5].incarnation) == (3, 0)
    assert RoutingTable.from_json(moved.to_json()) == moved
    assert set(task_transfers(table, moved)) == {
        TaskTransfer(5, 0, 0, 3), TaskTransfer(7, 0, 0, 1), TaskTransfer(7, 1, 0, 2),
        TaskTransfer(7, 2, 0, 2), TaskTransfer(7, 3, 1, 2),
    }  # fmt: skip


def test_in_transition_who_hands_on_still_has_its_tasks() -> None:
    table = RoutingTable().apply(RoutingDelta(1, (arrival(5), arrival(6), SPREAD)))
    ops = (MoveTasks(7, ((2, 1, 4),)), RestartQuery(5, 1, 3), RemoveQuery(6), arrival(8, 2))
    after = table.apply(RoutingDelta(2, ops))
    leading = transition_table(table, after)
    assert leading.queries[7].owners() == table.queries[7].owners()
    assert leading.queries[5].node == 3, "a query without its state moves at once"
    assert set(leading.queries) == {5, 7, 8}
    assert leading.version == 2
    assert list(task_transfers(leading, after)) == list(task_transfers(table, after))


MERGED = replace(SPREAD, aggregator=0)


def test_tasks_are_added_and_removed_with_their_backlog() -> None:
    table = RoutingTable().apply(RoutingDelta(1, (MERGED,)))
    more = table.apply(RoutingDelta(2, (SetTaskCount(7, 7, ((2, 5, 7),)),)))
    assert more.queries[7].owners() == (0, 0, 0, 1, 1, 2, 2)
    assert list(task_transfers(table, more)) == []
    fewer = more.apply(RoutingDelta(3, (MoveTasks(7, ((1, 1, 2), (0, 6, 7))), SetTaskCount(7, 4))))
    assert fewer.queries[7].owners() == (0, 1, 0, 1)
    assert set(task_transfers(more, fewer)) == {
        TaskTransfer(7, 1, 0, 1), TaskTransfer(7, 4, 1, 0, 0), TaskTransfer(7, 5, 2, 1, 1),
        TaskTransfer(7, 6, 2, 0, 2),
    }  # fmt: skip
    leading = transition_table(more, fewer)
    assert leading.queries[7].owners() == more.queries[7].owners()
    grown = fewer.apply(
        RoutingDelta(4, (SetTaskCount(7, 5, ((2, 4, 5),)), MoveTasks(7, ((2, 0, 1),))))
    )
    assert transition_table(fewer, grown).queries[7].owners() == (0, 1, 0, 1, 2)


def test_every_aggregator_gets_its_share_of_all_when_their_number_changes() -> None:
    table = RoutingTable().apply(RoutingDelta(1, (MERGED,)))
    two = table.apply(RoutingDelta(2, (SetAggregators(7, (0, 2)),)))
    assert RoutingTable.from_json(two.to_json()) == two
    assert two.queries[7].aggregators == (0, 2)
    assert list(task_transfers(table, two)) == [
        TaskTransfer(7, -1, 0, 0), TaskTransfer(7, -1, 0, 2),
    ]  # fmt: skip
    assert transition_table(table, two).queries[7].aggregators == (0,)
    swapped = two.apply(RoutingDelta(3, (SetAggregators(7, (2, 0)),)))
    assert list(task_transfers(two, swapped)) == [
        TaskTransfer(7, -1, 0, 2), TaskTransfer(7, -2, 2, 0),
    ]  # fmt: skip
    one = swapped.apply(RoutingDelta(4, (SetAggregator(7, 1),)))
    assert list(task_transfers(swapped, one)) == [
        TaskTransfer(7, -1, 2, 1), TaskTransfer(7, -2, 0, 1),
    ]  # fmt: skip
    assert one.queries[7].aggregators == (1,)


@pytest.mark.parametrize(
    "op",
    [
        SetTaskCount(7, 1),
        SetTaskCount(7, 6),
        SetTaskCount(7, 6, ((0, 4, 6),)),
        SetTaskCount(7, 4, ((0, 5, 6),)),
        SetTaskCount(8, 4),
        SetTaskCount(9, 4),
    ],
)
def test_tasks_without_a_node_or_an_aggregator_are_refused(op: Action) -> None:
    joining = replace(MERGED, query=9, text='{"right": [3], "aggregates": {}}')
    table = RoutingTable().apply(RoutingDelta(1, (MERGED, replace(SPREAD, query=8), joining)))
    with pytest.raises(InconsistentDelta):
        table.apply(RoutingDelta(2, (op,)))


@pytest.mark.parametrize(
    "op",
    [
        MoveTasks(9, ((0, 0, 1),)),
        MoveTasks(5, ((0, 0, 2),)),
        MoveTasks(5, ((0, 1, 1),)),
        AddQuery(9, 0, 0, (1,), SUMMARY_TEXT, ((0, 0, 2), (1, 3, 4))),
    ],
)
def test_tasks_that_there_are_not_cannot_move(op: Action) -> None:
    table = RoutingTable().apply(RoutingDelta(1, (arrival(5),)))
    with pytest.raises(InconsistentDelta):
        table.apply(RoutingDelta(2, (op,)))


@pytest.mark.parametrize("op", [RestartQuery(9, 1, 0), RemoveQuery(9), arrival(5)])
def test_operation_on_a_query_that_is_not_as_it_says_is_refused(op: Action) -> None:
    """Unknown queries cannot go or move, known ones cannot come."""
    table = RoutingTable().apply(RoutingDelta(1, (arrival(5),)))
    with pytest.raises(InconsistentDelta):
        table.apply(RoutingDelta(2, (op,)))


def test_versions_are_published_once_and_in_order(redis_client: "redis.Redis") -> None:
    """Again changes nothing, other contents and a gap are refused."""
    publish(redis_client, "c", RoutingDelta(1, (arrival(5),)))
    publish(redis_client, "c", RoutingDelta(1, (arrival(5),)))
    with pytest.raises(RoutingTaken):
        publish(redis_client, "c", RoutingDelta(1, (arrival(6),)))
    assert set(read_table(redis_client, "c", 1).queries) == {5}
    with pytest.raises(RoutingGap) as gap:
        publish(redis_client, "c", RoutingDelta(3, ()))
    assert (gap.value.expected, gap.value.got) == (1, 3)
    assert latest_version(redis_client, "c") == 1


def test_every_reader_gets_the_same_table(
    redis_client: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """From nothing, from an older table, across snapshots and behind trimmed deltas."""
    monkeypatch.setattr(publishing, "SNAPSHOT_EVERY", 4)
    monkeypatch.setattr(publishing, "KEPT_VERSIONS", 8)
    table = RoutingTable()
    old = table
    for version in range(1, 31):
        delta = RoutingDelta(version, (arrival(version),))
        table = table.apply(delta)
        publish(redis_client, "c", delta)
        old = table if version == 27 else old
        publishing.trim(redis_client, "c", version - 2)
    assert read_table(redis_client, "c", 30) == table
    assert read_table(redis_client, "c", 30, known=old) == table
    assert read_table(redis_client, "c", 30, known=RoutingTable()) == table
    assert redis_client.get(keys.route_delta_key("c", 3)) is None
    assert len(redis_client.keys("*:full")) <= 5


def test_nothing_behind_an_idle_pipeline_is_trimmed(
    redis_client: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that was stopped overnight replays its last batch under its old version."""
    monkeypatch.setattr(publishing, "SNAPSHOT_EVERY", 4)
    monkeypatch.setattr(publishing, "KEPT_VERSIONS", 8)
    for version in range(1, 61):
        publish(redis_client, "c", RoutingDelta(version, (arrival(version),)))
        publishing.trim(redis_client, "c", committed=20)
    assert read_table(redis_client, "c", 20).version == 20


def test_lost_routing_says_so_until_a_snapshot_repairs_it(redis_client: "redis.Redis") -> None:
    """After Redis lost its data the control plane publishes the whole table."""
    for version in (1, 2):
        publish(redis_client, "c", RoutingDelta(version, (arrival(version),)))
    table = read_table(redis_client, "c", 2)
    redis_client.flushdb()
    with pytest.raises(RoutingMissing):
        read_table(redis_client, "c", 2)
    publish_snapshot(redis_client, "c", table)
    assert read_table(redis_client, "c", 2) == table
    publish(redis_client, "c", RoutingDelta(3, (RemoveQuery(1),)))
    assert set(read_table(redis_client, "c", 3, known=table).queries) == {2}
