"""A plan in order is the plan that was given, measured after each action."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.planning.execution_plan import (
    ExecutionCost,
    StepLimits,
    allowed,
    estimate_cost,
    in_order,
    next_step,
    rollback,
)
from controlplane.planning.measures import measures
from controlplane.planning.resolution import resolve
from controlplane.plans.plan import OtherAction, PlannedAction, TaskMove, task_moves
from controlplane.plans.snapshot import ClusterSnapshot, Excluded
from controlplane.wire.routing.cluster_actions import (
    AssignStream,
    SetCapacity,
    SetDropRule,
    SetNodeActive,
    SetSplitCount,
)
from controlplane.wire.routing.drop_rules import INPUT, DropRule
from controlplane.wire.routing.query_actions import MoveTasks, SetKeyGrouping
from tests.controlplane.planning.drawn import drawn, gathered

WIDE = StepLimits(1000, 1000, 1e9)


def mixed(snapshot: ClusterSnapshot) -> list[PlannedAction]:
    """Return moves with actions of other kinds before, between and after them."""
    moves = [planned.action for planned in gathered(snapshot)]
    split = snapshot.split[0].id
    return resolve(snapshot, [
        SetCapacity(0, 50.0, emulated=True), *moves[:5], AssignStream(2, 1),
        SetDropRule(1, INPUT, DropRule.of(0.5)), *moves[5:], SetKeyGrouping(split, '{"kind":"x"}'),
        SetNodeActive(2, active=False),
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_the_imbalance_of_every_prefix_is_measured(seed: int) -> None:
    """Of queries and of tasks of a split query, whose records a node may receive anyway."""
    snapshot = drawn(seed)
    plan = gathered(snapshot)
    found = in_order(snapshot, plan)
    assert sorted(found.plan, key=repr) == sorted(plan, key=repr)
    for count, imbalance in enumerate(found.imbalance, start=1):
        measured = measures(snapshot, found.plan[:count])["imbalance"]
        assert imbalance == pytest.approx(measured, abs=2e-6)


@pytest.mark.parametrize("seed", range(3))
def test_only_moves_between_other_actions_change_their_places(seed: int) -> None:
    snapshot = drawn(seed)
    plan = mixed(snapshot)
    found = in_order(snapshot, plan)
    moves = [isinstance(one, TaskMove) for one in plan]
    assert [isinstance(one, TaskMove) for one in found.plan] == moves
    others = [one for one in plan if isinstance(one, OtherAction)]
    assert [one for one in found.plan if isinstance(one, OtherAction)] == others
    assert sorted(found.plan, key=repr) == sorted(plan, key=repr)
    last = measures(snapshot, found.plan)["imbalance"]
    assert found.imbalance[-1] == pytest.approx(last, abs=2e-6)
    assert len(found.imbalance) == len(plan)


def test_no_moves_are_an_empty_path() -> None:
    found = in_order(drawn(0), [])
    assert (found.plan, found.imbalance, found.safe) == ([], [], True)


def test_a_move_of_an_unknown_query_is_an_error() -> None:
    with pytest.raises(KeyError):
        in_order(drawn(0), [TaskMove(999, 0, 0, 1, 0)])


def test_a_drop_rule_and_a_capacity_change_the_loads() -> None:
    snapshot = drawn(1)
    before = measures(snapshot)
    half = resolve(snapshot, [SetDropRule(s.id, INPUT, DropRule.of(0.5)) for s in snapshot.streams])
    after = measures(snapshot, half)
    assert after["traffic"] == pytest.approx(before["traffic"] / 2)
    assert after["replication_factor"] == pytest.approx(before["replication_factor"])
    slower = resolve(snapshot, [SetCapacity(0, 10.0, emulated=False)])
    assert measures(snapshot, slower)["imbalance"] > before["imbalance"]


def test_actions_on_one_object_are_in_different_steps() -> None:
    snapshot = drawn(0)
    plan = resolve(snapshot, [
        AssignStream(1, 0), SetDropRule(1, INPUT, DropRule.of(0.1)), AssignStream(1, 1),
        SetDropRule(1, INPUT, DropRule.of(0.2)),
    ])  # fmt: skip
    # The first is dropped as the stream is not there already: splits are stream % 2.
    assert next_step(plan, WIDE, 1.0) == 2
    assert next_step(plan[2:], WIDE, 1.0) == 2


def test_tasks_of_a_query_move_together_and_not_with_its_key_grouping() -> None:
    snapshot = drawn(0)
    split = snapshot.split[0].id
    moves = [MoveTasks(split, ((2, task, task + 1),)) for task in (0, 1)]
    plan = resolve(snapshot, [*moves, SetKeyGrouping(split, '{"kind":"x"}')])
    assert next_step(plan, WIDE, 1.0) == 2


def test_an_action_on_the_cluster_has_a_step_of_its_own() -> None:
    snapshot = drawn(0)
    plan = resolve(snapshot, [AssignStream(1, 0), SetSplitCount(3), AssignStream(2, 1)])
    assert next_step(plan, WIDE, 1.0) == 1
    assert next_step(plan[1:], WIDE, 1.0) == 1


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 3), st.integers(0, 3), st.integers(0, 900)),
        unique_by=lambda row: row[0],
    ),
    st.integers(1, 4),
    st.integers(1, 6),
)
def test_steps_keep_their_limits(
    rows: list[tuple[int, int, int, int]], node_moves: int, cluster_moves: int
) -> None:
    """Every step has an action; more than one only within all limits."""
    plan = [TaskMove(query, 0, *row) for query, *row in rows]
    limits, place = StepLimits(node_moves, cluster_moves, 1000.0), 0
    while place < len(plan):
        count = next_step(plan[place:], limits, 1.0)
        moves = task_moves(plan[place : place + count])
        assert 1 <= count <= cluster_moves
        busy = [node for move in moves for node in (move.source, move.target)]
        if count > 1:
            assert sum(move.bytes for move in moves) <= 1000
            assert max(busy.count(node) for node in busy) <= 2 * node_moves
        place += count


def test_the_cost_counts_actions_moves_and_bytes() -> None:
    snapshot = drawn(2)
    plan = mixed(snapshot)
    moves = task_moves(plan)
    cost = estimate_cost(plan, WIDE, 2.0)
    sent = sum(move.bytes for move in moves)
    assert (cost.actions, cost.moves, cost.bytes) == (len(plan), len(moves), sent)
    assert cost.pause_ms == 2000
    assert estimate_cost([], WIDE, 2.0) == ExecutionCost(0, 0, 0, 0, 0, 0.0)
    assert estimate_cost(set(plan) - set(moves), WIDE, 2.0).pause_ms == 0


def test_a_rollback_reverts_the_last_action_first() -> None:
    snapshot = drawn(3)
    plan = mixed(snapshot)
    way = rollback(plan)
    assert [one.action for one in way] == [one.before[0] for one in reversed(plan)]
    back, before = measures(snapshot, [*plan, *way]), measures(snapshot)
    for name, value in before.items():
        assert back[name] == pytest.approx(value), name


@pytest.mark.parametrize(
    ("excluded", "left_out"),
    [
        (Excluded("node", "n2"), SetNodeActive),
        (Excluded("stream", 2), AssignStream),
        (Excluded("query", "split"), SetKeyGrouping),
    ],
)
def test_exclusions_forbid_actions_of_every_kind(excluded: Excluded, left_out: type) -> None:
    snapshot = drawn(1)
    snapshot.excluded.append(excluded)
    plan = mixed(snapshot)
    kinds = {type(one.action) for one in allowed(snapshot, plan)}
    assert left_out in {type(one.action) for one in plan}
    assert left_out not in kinds


def test_an_excluded_node_is_neither_left_nor_entered() -> None:
    snapshot = drawn(1)
    snapshot.excluded.append(Excluded("node", "n1"))
    left = allowed(snapshot, gathered(snapshot))
    nodes = {node for move in task_moves(left) for node in (move.source, move.target)}
    assert left
    assert 1 not in nodes
