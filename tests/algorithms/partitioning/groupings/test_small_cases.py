"""Small cases that can be followed by hand, and what bounds each grouping."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem
from algorithms.lab.partitioning.relocations import key_relocations
from algorithms.partitioning.grouping import Messages, Workers
from algorithms.partitioning.groupings.bounded_load import BoundedLoad
from algorithms.partitioning.groupings.key import KeyGrouping
from algorithms.partitioning.groupings.random_choices import RandomChoices
from algorithms.partitioning.groupings.rate_aware import RateAware
from algorithms.partitioning.groupings.two_choices import TwoChoices
from algorithms.partitioning.replay import key_hashes
from tests.algorithms.partitioning.streams import messages, workers

THREE = Workers.of(3)


def test_key_grouping_is_the_hash_modulo_the_workers() -> None:
    """Running clusters have state where this sends keys; also with weights if they are equal."""
    keys = key_hashes(1_000)
    for grouping in (KeyGrouping(), KeyGrouping(weighted=True)):
        assigned, _ = grouping.route(grouping.start(THREE), Messages(keys))
        assert assigned.tolist() == (keys % np.uint64(3)).tolist()
    assigned, _ = KeyGrouping().route(KeyGrouping().start(Workers.of(3, [1, 5, 5])), Messages(keys))
    assert assigned.tolist() == (keys % np.uint64(3)).tolist()


@given(st.lists(st.integers(0, 2**64 - 1), max_size=50), st.integers(1, 10_000))
def test_the_remainder_is_exact(keys: list[int], count: int) -> None:
    grouping, edges = KeyGrouping(), [0, 1, count - 1, count, 2**64 - 1, 2**64 - count, 2**63]
    stream = Messages(np.array([*keys, *edges], np.uint64))
    assigned, _ = grouping.route(grouping.start(Workers.of(count)), stream)
    assert assigned.tolist() == [key % count for key in [*keys, *edges]]


@settings(deadline=None, max_examples=60)
@example(Messages(np.zeros(5, np.uint64)), Workers.of(5), 2.0)
@given(stream=messages(400), of=workers(), eps=st.sampled_from([0.0, 0.01, 0.3, 2.0]))
def test_loads_are_bounded_at_any_time(stream: Messages, of: Workers, eps: float) -> None:
    """I(m) < eps m / n + 1 with equal capacities, on every stream."""
    for grouping in (RandomChoices(eps=eps), BoundedLoad(eps=eps)):
        assigned, _ = grouping.route(grouping.start(of), stream)
        for m in range(1, len(stream) + 1):
            loads = np.bincount(assigned[:m], minlength=of.count)
            assert (loads < (1 + eps) * m * of.shares + 1).all()
            if of.equal:
                assert loads.max() - m / of.count < eps * m / of.count + 1


def test_two_choices_draw_two_workers_per_message() -> None:
    """Messages of a single key reach every worker, with loads that hardly differ."""
    grouping = TwoChoices()
    _, state = grouping.route(grouping.start(Workers.of(20)), Messages(np.zeros(20_000, np.uint64)))
    assert state.load.max() - state.load.min() <= 12


def test_a_pane_is_continued_beyond_mean_and_deviation() -> None:
    """Panes of 10 messages, then one of 40: 10 is the mean and the deviation is 0."""
    grouping = RateAware(window_ms=1_000, slide_ms=10, open_panes=1, slack=100.0)
    times = np.concatenate([np.repeat(np.arange(0, 50, 10), 10), np.full(40, 50)])
    assigned, state = grouping.route(
        grouping.start(Workers.of(10)), Messages(np.zeros(90, np.uint64), times)
    )
    assert assigned.reshape(9, 10).tolist() == [[worker] * 10 for worker in range(9)]
    assert state.panes.known_sizes() == {0: 10, 1: 10, 2: 10, 3: 10, 4: 10, 5: 40}


def test_a_small_pane_is_compensated() -> None:
    """The worker of a pane with one message gets the next pane once all others have had one."""
    grouping = RateAware(window_ms=1_000, slide_ms=10, open_panes=1, slack=100.0)
    sizes = [10, 1, 10, 10, 9, 10]
    times = np.repeat(np.arange(len(sizes)) * 10, sizes)
    assigned, _ = grouping.route(
        grouping.start(Workers.of(3)), Messages(np.zeros(len(times), np.uint64), times)
    )
    assert assigned[np.cumsum([0, *sizes[:-1]])].tolist() == [0, 1, 2, 1, 0, 2]


def test_late_messages_belong_to_the_oldest_open_pane() -> None:
    grouping = RateAware(window_ms=10, slide_ms=10, open_panes=2)
    _, state = grouping.route(
        grouping.start(Workers.of(2)), Messages(np.zeros(4, np.uint64), np.array([5, 45, 3, 38]))
    )
    assert state.panes.known_sizes() == {0: 1, 4: 1, 3: 2}


def test_relocated_keys() -> None:
    """Figure 13: basic hashing relocates nearly all keys, the ring those of the new worker."""
    keys = key_hashes(20_000)
    joined = key_relocations(keys, range(10), range(11))
    assert joined.basic > 0.85 * joined.keys
    assert joined.ring == joined.necessary
    assert 0.06 < joined.ring / joined.keys < 0.12
    left = key_relocations(keys, range(10), [w for w in range(10) if w != 3])
    assert left.ring == left.necessary
    same = key_relocations(keys, range(4), range(4))
    assert (same.basic, same.ring, same.necessary) == (0, 0, 0)
    for wrong in ([], [1, 1], [-1]):
        with pytest.raises(BadProblem):
            key_relocations(keys, range(3), wrong)
