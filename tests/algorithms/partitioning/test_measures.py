import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.balance import imbalance
from algorithms.errors import BadProblem
from algorithms.lab.partitioning.certificate import Counts, certify, count
from algorithms.lab.partitioning.windows import is_window_closer, window_closers
from algorithms.partitioning.grouping import Workers
from algorithms.partitioning.groupings.panes import pane_size
from algorithms.partitioning.replay import PairCounter, load_over_share, load_ratio, memory


def test_imbalance() -> None:
    loads = np.array([10, 20, 30])
    assert imbalance(load_over_share(loads, Workers.of(3))) == 10
    assert imbalance(load_over_share(loads, Workers.of(3, [1, 2, 3]))) == pytest.approx(0)
    assert imbalance(load_over_share(np.zeros(3, np.int64), Workers.of(3))) == 0


def test_load_ratio() -> None:
    assert load_ratio(np.array([1, 3]), Workers.of(2)) == pytest.approx(0.5)
    assert load_ratio(np.array([1, 3]), Workers.of(2, [1, 3])) == pytest.approx(0)
    assert load_ratio(np.array([0, 0]), Workers.of(2)) == 0


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 3)), max_size=60), st.data())
def test_memory_is_the_number_of_distinct_pairs(
    pairs: list[tuple[int, int]], data: st.DataObject
) -> None:
    pairs = pairs + data.draw(st.lists(st.sampled_from(pairs or [(0, 0)]), max_size=20))
    keys = np.array([key for key, _ in pairs], np.uint64)
    workers = np.array([worker for _, worker in pairs], np.int64)
    assert memory(keys, workers) == len(set(pairs))


def test_memory_of_many_pairs() -> None:
    rng, counter, seen = np.random.default_rng(1), PairCounter(), set()
    for _ in range(4):
        keys = rng.integers(0, 30_000, 50_000).astype(np.uint64)
        workers = rng.integers(0, 5, 50_000)
        seen |= set(zip(keys.tolist(), workers.tolist(), strict=True))
        assert counter.add(keys, workers) == len(seen)


def test_certificate() -> None:
    keys, assignment = ["a", "b", "a"], [0, 1, 1]
    assert count(keys, assignment, 3) == Counts([1, 2, 0], 3, 1.0)
    assert count(["a"] * 60, [0] * 10 + [1] * 20 + [2] * 30, 3, [1, 2, 3]).imbalance == 0
    certify(keys, assignment, Counts([1, 2, 0], 3, 1.0))
    for wrong in (Counts([2, 1, 0], 3, 1.0), Counts([1, 2, 0], 2, 1.0), Counts([1, 2, 0], 3, 2.0)):
        with pytest.raises(AssertionError):
            certify(keys, assignment, wrong)
    for invalid in ([0, 1], [0, 1, 3], [0, 1, -1]):
        with pytest.raises(AssertionError):
            count(keys, invalid, 3)


def test_shares_of_workers() -> None:
    assert Workers.of(4).shares.tolist() == [0.25] * 4
    assert Workers.of(2, [1, 3]).shares.tolist() == [0.25, 0.75]
    assert Workers.of(2, [1e200, 1e200]).equal
    assert not Workers.of(2, [1, 3]).equal
    assert Workers.of(2, [1, 3]).unweighted.equal
    for count_, capacities in (
        (0, None),
        (2, [1]),
        (2, [1, -1]),
        (2, [0, 1]),
        (2, [1, 1e-9]),
        (1.5, None),
    ):
        with pytest.raises(BadProblem):
            Workers.of(count_, capacities)  # type: ignore[arg-type]


def test_windows_and_panes() -> None:
    assert window_closers(12, 4, 24) == [12, 16, 20, 24]
    assert not any(is_window_closer(index, 12, 4) for index in range(12))
    assert (pane_size(60, 1), pane_size(9, 6), pane_size(12, 4)) == (1, 3, 4)
    for wrong in ((0, 1), (1, 0), (-1, 1), (1.5, 1)):
        with pytest.raises(BadProblem):
            pane_size(*wrong)
