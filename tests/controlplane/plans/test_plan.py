"""A plan keeps its actions, and its seal names them and the snapshot."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.plans.plan import (
    Plan,
    PlannedAction,
    TaskMove,
    rows_of,
    seal_of,
    task_moves,
)
from controlplane.plans.snapshot import canonical
from controlplane.wire.routing import AssignStream, SetDropRule
from controlplane.wire.routing.drop_rules import DropRule

MOVES = st.builds(TaskMove, *(st.integers(0, 9) for _ in range(4)), st.integers(0, 10**9)).map(
    TaskMove.planned
)
OTHERS = st.builds(
    lambda stream, before, after: PlannedAction(
        AssignStream(stream, after), (AssignStream(stream, before),)
    ),
    *(st.integers(0, 9) for _ in range(3)),
) | st.builds(
    lambda stream, share: PlannedAction(
        SetDropRule(stream, 0, DropRule.of(share)), (SetDropRule(stream),)
    ),
    st.integers(0, 9), st.floats(0, 1),
)  # fmt: skip


@given(st.lists(MOVES | OTHERS, max_size=6))
def test_a_plan_is_stored_and_read(plan: list[PlannedAction]) -> None:
    stored = Plan(rows_of(plan))
    assert list(stored) == plan
    assert [stored[place] for place in range(len(stored))] == plan
    assert list(stored[1:]) == plan[1:]
    assert task_moves(stored) == [one.task_move for one in plan if one.task_move is not None]


def test_the_seal_covers_actions_and_snapshot() -> None:
    """Another action, order or snapshot has another seal; the measured state does not count."""
    moves = [TaskMove(query, 0, 0, 1, 5).planned() for query in (1, 2)]
    rows = rows_of(moves)
    seal = seal_of(rows, "abc")
    assert seal_of([rows[0] | {"bytes": 7}, rows[1]], "abc") == seal
    assert seal_of(rows_of([TaskMove(1, 0, 0, 2, 5).planned(), moves[1]]), "abc") != seal
    assert seal_of(rows_of([TaskMove(1, 1, 0, 1, 5).planned(), moves[1]]), "abc") != seal
    assert seal_of(rows[::-1], "abc") != seal
    assert seal_of(rows, "abd") != seal
    assert canonical({"b": 1, "a": [1.5]}) == '{"a":[1.5],"b":1}'
