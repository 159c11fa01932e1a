"""Actions of a planner become a plan on a snapshot, or are refused with their place."""

import pytest

from controlplane.errors import Conflict
from controlplane.planning.load_model import LoadModel
from controlplane.planning.resolution import resolve
from controlplane.plans.plan import OtherAction, TaskMove
from controlplane.plans.snapshot import GroupingRow
from controlplane.wire.routing.cluster_actions import AssignStream, SetCapacity
from controlplane.wire.routing.query_actions import MoveTasks, RemoveQuery, SetTaskCount
from controlplane.wire.routing.route import NO_AGGREGATOR
from tests.controlplane.planning.drawn import drawn


def test_moves_of_several_tasks_become_moves_of_one() -> None:
    snapshot = drawn(0)
    query = snapshot.queries[0]
    target = (query.node + 1) % len(snapshot.nodes)
    (move,) = resolve(snapshot, [MoveTasks(query.id, ((target, 0, 1),))])
    assert move == TaskMove(query.id, 0, query.node, target, snapshot.state.get(query.id, 0))


def test_a_task_moves_once_between_other_actions() -> None:
    """Consecutive moves may be reordered, so only the last target of a task counts."""
    snapshot = drawn(0)
    query, nodes = snapshot.queries[0], len(snapshot.nodes)
    first, second = (query.node + 1) % nodes, (query.node + 2) % nodes
    there, on = (MoveTasks(query.id, ((node, 0, 1),)) for node in (first, second))
    back = MoveTasks(query.id, ((query.node, 0, 1),))
    size = snapshot.state.get(query.id, 0)
    assert resolve(snapshot, [there, on]) == [TaskMove(query.id, 0, query.node, second, size)]
    assert resolve(snapshot, [there, back]) == []
    between = SetCapacity(0, 12_345.0, emulated=True)
    plan = resolve(snapshot, [there, between, on])
    assert [type(planned) for planned in plan] == [TaskMove, OtherAction, TaskMove]
    assert plan[2] == TaskMove(query.id, 0, first, second, size)


def test_the_number_of_tasks_is_set_after_the_moves_before() -> None:
    """Its inverse adds removed tasks where they were moved to; new tasks can be moved."""
    snapshot = drawn(0)
    split = snapshot.split[0].id
    snapshot.groupings.append(GroupingRow(split, "", 1))
    fewer, more = SetTaskCount(split, 3), SetTaskCount(split, 5, ((1, 3, 5),))
    moved, added = MoveTasks(split, ((2, 3, 4),)), MoveTasks(split, ((0, 4, 5),))
    plan = resolve(snapshot, [moved, fewer, more, added])
    assert [planned.before for planned in plan[1:3]] == [
        (SetTaskCount(split, 4, ((2, 3, 4),)),), (fewer,),
    ]  # fmt: skip
    assert plan[3] == TaskMove(split, 4, 1, 0, 0)
    model = LoadModel.of(snapshot).after(plan)
    units = [model.tasks[split, task] for task in range(5)]
    assert model.shares[units].tolist() == [0.2] * 5
    assert model.nodes[units].tolist() == [0, 0, 1, 1, 0]
    assert model.state[units].tolist() == [10, 20, 30, 0, 0]


@pytest.mark.parametrize("row", [(1, False), (NO_AGGREGATOR, False), (1, True)])
def test_only_aggregated_queries_that_do_not_join_can_have_other_tasks(
    row: tuple[int, bool],
) -> None:
    snapshot = drawn(0)
    split = snapshot.split[0].id
    snapshot.groupings.append(GroupingRow(split, "", *row))
    if row == (1, False):
        assert len(resolve(snapshot, [SetTaskCount(split, 2)])) == 1
        return
    with pytest.raises(Conflict) as refused:
        resolve(snapshot, [SetTaskCount(split, 2)])
    assert refused.value.code == "impossible_action"


def test_what_changes_nothing_is_left_out() -> None:
    snapshot = drawn(0)
    query, stream = snapshot.queries[0], snapshot.streams[0].id
    stays = MoveTasks(query.id, ((query.node, 0, 1),))
    assert resolve(snapshot, [stays, AssignStream(stream, snapshot.splits[stream])]) == []


@pytest.mark.parametrize(
    "action", [MoveTasks(9_999, ((0, 0, 1),)), AssignStream(9_999, 0), RemoveQuery(1)]
)
def test_an_impossible_action_is_named_by_its_place(action: object) -> None:
    snapshot = drawn(0)
    fine = SetCapacity(0, 12_345.0, emulated=True)
    with pytest.raises(Conflict) as refused:
        resolve(snapshot, [fine, action])  # type: ignore[list-item]
    assert (refused.value.code, refused.value.data) == ("impossible_action", {"action": 1})
