"""Consistent grouping as a grouping of the pipeline: routing, signals of feedback, packed state."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import BadParameters, BadProblem
from algorithms.lab.partitioning.workloads import draw_zipf
from algorithms.partitioning.consistent_grouping import (
    MAX_VIRTUAL,
    REMEMBERED,
    ConsistentGrouping,
    VirtualState,
)
from algorithms.partitioning.grouping import Feedback, Messages, Workers

TEN = Workers.of(10)


def keys(count: int, seed: int = 0) -> Messages:
    return Messages(draw_zipf(1.0, 1_000, count, seed).keys)


def served(grouping: ConsistentGrouping, state: VirtualState, speeds: Any) -> Any:
    """Return the utilisation of workers whose virtual workers all have equal loads, 0.8 in all."""
    speeds = np.asarray(speeds, np.float64)
    return 0.8 * state.view.owned[0] / state.view.owned.sum() * speeds.sum() / speeds


def adapted(
    grouping: ConsistentGrouping, state: VirtualState, speeds: Any, slots: int
) -> tuple[VirtualState, list[int]]:
    """Return the state after some time slots, and the moves in each."""
    moves, start = [], state.slot_start_ms or 0
    for slot in range(slots):
        feedback = Feedback(start + slot * 10_000, served(grouping, state, speeds))
        before, state = state, grouping.combined(state, [], feedback)
        moves.append(int((before.view.owner != state.view.owner).sum()))
    return state, moves


@settings(max_examples=40, deadline=None)
@given(
    capacities=st.lists(st.floats(0.01, 100), min_size=1, max_size=12), virtual=st.integers(1, 9)
)
def test_every_worker_starts_with_its_share(capacities: list[float], virtual: int) -> None:
    """In proportion to capacities, at least one, and the total is exact; equal if unweighted."""
    workers = Workers.of(len(capacities), capacities)
    counts = np.bincount(ConsistentGrouping(virtual=virtual).first_owners(workers))
    assert len(counts) == len(capacities)
    assert counts.sum() == virtual * len(capacities)
    assert counts.min() >= 1
    # A worker has more than its share only where others need their one.
    assert (counts <= np.maximum(2, workers.shares * counts.sum() + 1)).all()
    equal = ConsistentGrouping(virtual=virtual, weighted=False).first_owners(workers)
    assert (np.bincount(equal) == virtual).all()


def test_a_large_cluster_has_fewer_virtual_workers_each() -> None:
    state = ConsistentGrouping(virtual=100).start(Workers.of(1_000))
    assert state.view.owned[0].tolist() == [MAX_VIRTUAL // 1_000] * 1_000


def test_loads_of_sources_are_added() -> None:
    """Old loads are halved, so that the slack of a virtual worker stays small."""
    grouping = ConsistentGrouping()
    start = grouping.start(TEN)
    after = [grouping.route(start, keys(500, seed))[1] for seed in range(3)]
    state = grouping.combined(start, after)
    assert state.view.routed[0] == state.view.load.sum() == 1_500
    assert np.array_equal(state.view.load, sum(one.view.load for one in after))
    large = start.view.load + REMEMBERED
    full = VirtualState(TEN, start.view._replace(load=large), start.evidence, None)
    halved = grouping.combined(full, [VirtualState(
        TEN, full.view._replace(load=large + 2), start.evidence, None)])  # fmt: skip
    assert (halved.view.load == (REMEMBERED + 2) // 2).all()
    assert halved.view.routed[0] == halved.view.load.sum()


def test_signals_count_once_per_time_slot() -> None:
    grouping = ConsistentGrouping(hysteresis=0.0, moves=1, slot_s=5.0)
    state = grouping.start(Workers.of(2))
    busy = np.array([1.0, 0.2])
    owned = []
    for now in (1_000, 3_000, 5_999, 6_000, 8_000, 11_000):
        state = grouping.combined(state, [], Feedback(now, busy))
        owned.append(int(state.view.owned[0, 0]))
    assert owned == [20, 20, 20, 19, 19, 18]
    # Nothing is known, so nothing moves.
    assert grouping.combined(state, [], Feedback(60_000)).view.owned[0, 0] == 18


def test_waiting_messages_count_as_utilisation() -> None:
    """As the paper suggests for real deployments: messages in the queue by its capacity."""
    grouping = ConsistentGrouping(hysteresis=0.0, moves=1, queue=100, slot_s=0.0, relative=False)
    state = grouping.combined(grouping.start(Workers.of(2)), [], Feedback(0))
    moved = grouping.combined(state, [], Feedback(1, None, np.array([90, 10])))
    assert moved.view.owned[0].tolist() == [19, 21]
    both = Feedback(1, np.array([0.8, 0.5]), np.array([10, 0]))
    assert grouping.combined(state, [], both).view.owned[0].tolist() == [19, 21]


def test_hysteresis_ends_the_moves_in_steady_state() -> None:
    """Three of ten workers are 5 times as fast, which nobody declared; then three others."""
    speeds = np.array([5.0] * 3 + [1.0] * 7)
    grouping = ConsistentGrouping(virtual=100, weighted=False)
    state, moves = adapted(grouping, grouping.start(TEN), speeds, 60)
    assert np.abs(served(grouping, state, speeds) - 0.8).max() <= 0.05 + 1e-9
    assert moves[0] == 0
    assert sum(moves) >= 340
    assert sum(moves[30:]) == 0
    state, moves = adapted(grouping, state, speeds[::-1], 60)
    assert sum(moves) > 300
    assert sum(moves[40:]) == 0
    assert np.abs(served(grouping, state, speeds[::-1]) - 0.8).max() <= 0.05 + 1e-9


@settings(max_examples=25, deadline=None)
@given(
    levels=st.lists(st.floats(0.75, 0.85), min_size=3, max_size=3),
    noise=st.integers(0, 1_000),
)
def test_noise_within_the_hysteresis_moves_nothing(levels: list[float], noise: int) -> None:
    """Steady levels between the thresholds, with disturbances that cancel out in pairs."""
    grouping = ConsistentGrouping(slot_s=0.0, hysteresis=0.5, relative=False)
    state = grouping.start(Workers.of(3))
    rng = np.random.default_rng(noise)
    for now in range(40):
        if now % 2 == 0:
            disturbance = -rng.uniform(-0.2, 0.2, 3)
        disturbance = -disturbance
        state = grouping.combined(state, [], Feedback(now, np.array(levels) + disturbance))
    assert state.view.owned[0].tolist() == [20, 20, 20]


def test_as_in_the_paper_noise_moves_forever() -> None:
    grouping = ConsistentGrouping(slot_s=0.0, hysteresis=0.0, moves=1, relative=False)
    state = grouping.start(Workers.of(2))
    rng, moves = np.random.default_rng(0), []
    for now in range(400):
        before = state
        state = grouping.combined(state, [], Feedback(now, 0.8 + rng.normal(0, 0.08, 2)))
        moves.append(int((before.view.owner != state.view.owner).sum()))
    assert sum(moves[:200]) > 20
    assert sum(moves[200:]) > 20


def test_overload_is_shared_with_relative_thresholds() -> None:
    """All workers are busy: nothing moves in the paper."""
    levels = np.array([3.0, 1.0])
    for relative, owned in ((False, [20, 20]), (True, [5, 35])):
        grouping = ConsistentGrouping(slot_s=0.0, hysteresis=0.0, relative=relative, probe=False)
        state = grouping.start(Workers.of(2))
        for now in range(3):
            state = grouping.combined(state, [], Feedback(now, levels))
        assert state.view.owned[0].tolist() == owned


def packed(grouping: ConsistentGrouping, state: VirtualState) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(json.dumps(grouping.pack(state)))
    return row


@settings(max_examples=20, deadline=None)
@given(workers=st.integers(1, 9), batches=st.integers(0, 6), seed=st.integers(0, 99))
def test_a_packed_state_decides_the_same(workers: int, batches: int, seed: int) -> None:
    """Through random signals, in every further batch too."""
    grouping = ConsistentGrouping(virtual=6, slot_s=0.0, hysteresis=0.1, moves=2, probe=True)
    rng = np.random.default_rng(seed)
    direct = replayed = grouping.start(Workers.of(workers))
    for batch in range(batches):
        replayed = grouping.unpack(Workers.of(workers), packed(grouping, replayed))
        assert packed(grouping, replayed) == packed(grouping, direct)
        messages, feedback = keys(50, batch), Feedback(batch, rng.random(workers) * 1.5)
        first, one = grouping.route(direct, messages)
        second, other = grouping.route(replayed, messages)
        assert np.array_equal(first, second)
        direct = grouping.combined(direct, [one], feedback)
        replayed = grouping.combined(replayed, [other], feedback)


def test_packed_states_are_small() -> None:
    """The largest one: as many virtual workers as there can be, all of which have moved."""
    grouping = ConsistentGrouping(virtual=32, slot_s=0.0, hysteresis=0.0, moves=64)
    workers, rng = Workers.of(64), np.random.default_rng(0)
    _, state = grouping.route(grouping.start(workers), keys(200_000))
    for now in range(200):
        state = grouping.combined(state, [], Feedback(now, rng.random(64) * 1.5))
    assert len(json.dumps(grouping.pack(state))) < 8_192
    usual = ConsistentGrouping().start(TEN)
    assert len(json.dumps(ConsistentGrouping().pack(usual))) < 200


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"lowest": -1}, "state.lowest"),
        ({"lowest": None}, "state.lowest"),
        ({"slot_start_ms": 1.5}, "state.slot_start_ms"),
        ({"arrays": "é"}, "state.arrays"),
        ({"arrays": None}, "state.arrays"),
        ({"arrays": ""}, "state.arrays"),
    ],
)
def test_a_damaged_state_is_refused(change: dict[str, Any], where: str) -> None:
    grouping = ConsistentGrouping()
    row = packed(grouping, grouping.start(TEN))
    with pytest.raises(BadProblem) as caught:
        grouping.unpack(TEN, row | change)
    assert caught.value.where == where


def test_a_state_of_other_workers_is_refused() -> None:
    grouping = ConsistentGrouping()
    row = packed(grouping, grouping.start(TEN))
    for workers in (9, 11):
        with pytest.raises(BadProblem):
            grouping.unpack(Workers.of(workers), row)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"eps": -0.1}, "eps"),
        ({"virtual": 0}, "virtual"),
        ({"lower": 0.9}, "lower"),
        ({"hysteresis": -1.0}, "hysteresis"),
        ({"moves": 0}, "moves"),
        ({"moved": "random"}, "moved"),
    ],
)
def test_bad_parameters_are_refused(values: dict[str, Any], field: str) -> None:
    with pytest.raises(BadParameters) as caught:
        ConsistentGrouping.from_mapping(values)
    assert list(caught.value.fields) == [field]
