"""Steps are as long as their bounds allow, and no longer."""

from collections import Counter
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from algorithms.ordering.steps import NONE, Footprints, StepBounds, step_stops


class One(NamedTuple):
    sent: int
    nodes: tuple[int, int]
    objects: list[int]
    shared: int
    single: bool


OBJECTS = st.integers(0, 5)
MOVES = st.builds(
    lambda sent, nodes, task, shared: One(sent, nodes, [task], shared, single=False),
    st.integers(0, 60), st.permutations(range(4)).map(lambda nodes: (nodes[0], nodes[1])),
    st.integers(6, 9), OBJECTS,
)  # fmt: skip
OTHERS = st.builds(
    lambda objects, single: One(0, (NONE, NONE), objects, NONE, single),
    st.lists(OBJECTS, min_size=1, max_size=2, unique=True), st.booleans(),
)  # fmt: skip


def footprints(actions: list[One]) -> Footprints:
    return Footprints(
        np.array([one.sent for one in actions], np.int64),
        np.array([one.nodes for one in actions], np.int64).reshape(-1, 2),
        np.cumsum([0, *(len(one.objects) for one in actions)]),
        np.array([number for one in actions for number in one.objects], np.int64),
        np.array([one.shared for one in actions], np.int64),
        np.array([one.single for one in actions], np.bool_),
    )


def may_be_one_step(actions: list[One], most: int, node_moves: int, sent: float) -> bool:
    """The definition, for more than one action."""
    own = Counter(number for one in actions for number in one.objects)
    busy = Counter(node for one in actions for node in set(one.nodes) - {NONE})
    return (
        len(actions) <= most
        and sum(one.sent for one in actions) <= sent
        and max(busy.values(), default=0) <= node_moves
        and max(own.values(), default=0) <= 1
        and not own.keys() & {one.shared for one in actions}
        and not any(one.single for one in actions)
    )


@given(
    st.lists(MOVES | OTHERS, max_size=12),
    st.integers(1, 3), st.integers(0, 4), st.integers(1, 4), st.integers(0, 100),
)  # fmt: skip
def test_steps_are_the_longest_that_the_bounds_allow(
    actions: list[One], first: int, more: int, node_moves: int, sent: int
) -> None:
    bounds = StepBounds(first, first + more, node_moves, sent)
    stops = step_stops(footprints(actions), bounds).tolist()
    assert stops[-1:] == [len(actions)][: len(actions)]
    most = first
    for start, stop in zip([0, *stops], stops, strict=False):
        assert stop > start
        if stop - start > 1:
            assert may_be_one_step(actions[start:stop], most, node_moves, sent)
        if stop < len(actions):
            assert not may_be_one_step(actions[start : stop + 1], most, node_moves, sent)
        most = min(most + 1, bounds.actions)
