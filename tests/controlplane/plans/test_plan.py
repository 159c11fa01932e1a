"""A plan keeps its actions, and its seal names them and the snapshot."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.plans.plan import (
    OtherAction,
    Plan,
    PlannedAction,
    TaskMove,
    rows_of,
    seal_of,
    task_moves,
)
from controlplane.plans.snapshot import canonical, digest_of
from controlplane.wire.routing.action_json import action_to_json
from controlplane.wire.routing.cluster_actions import AssignStream, SetDropRule
from controlplane.wire.routing.drop_rules import DropRule

MOVES = st.builds(TaskMove, *(st.integers(0, 9) for _ in range(4)), st.integers(0, 10**9))
OTHERS = st.builds(
    lambda stream, before, after: OtherAction(
        AssignStream(stream, after), (AssignStream(stream, before),)
    ),
    *(st.integers(0, 9) for _ in range(3)),
) | st.builds(
    lambda stream, share: OtherAction(
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
    assert task_moves(stored) == [one for one in plan if isinstance(one, TaskMove)]


def test_the_seal_covers_actions_and_snapshot() -> None:
    """Another action, order or snapshot has another seal; the measured state does not count."""
    first, second = TaskMove(1, 0, 0, 1, 5), TaskMove(2, 0, 0, 1, 5)
    seal = seal_of([first, second], "abc")
    assert seal_of([first._replace(bytes=7), second], "abc") == seal
    assert seal_of([first._replace(target=2), second], "abc") != seal
    assert seal_of([first._replace(task=1), second], "abc") != seal
    assert seal_of([second, first], "abc") != seal
    assert seal_of([first, second], "abd") != seal


@given(st.lists(MOVES | OTHERS, max_size=6))
def test_the_seal_is_the_hash_of_the_canonical_json(plan: list[PlannedAction]) -> None:
    actions = [action_to_json(one.action) for one in plan]
    text = canonical({"actions": actions, "snapshot": "abc"})
    assert seal_of(plan, "abc") == digest_of(text)


def test_canonical_json_has_sorted_keys_and_no_blanks() -> None:
    assert canonical({"b": 1, "a": [1.5]}) == '{"a":[1.5],"b":1}'
