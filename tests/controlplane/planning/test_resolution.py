"""Actions of a planner become a plan on a snapshot, or are refused with their place."""

import pytest

from controlplane.errors import Conflict
from controlplane.planning.resolution import resolve
from controlplane.plans.plan import OtherAction, TaskMove
from controlplane.wire.routing import AssignStream, MoveTasks, RemoveQuery, SetCapacity
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
