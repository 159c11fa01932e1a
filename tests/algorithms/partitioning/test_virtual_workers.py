"""Signals, queues of idle and busy workers, and moves of virtual workers."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.partitioning.virtual_workers import (
    LARGEST_RATIO,
    Rules,
    Views,
    new_views,
    pair_workers,
    receive_signal,
    signal_workers,
)
from algorithms.vocabulary import Floats


def rules(
    hysteresis: float = 0.0, *, relative: bool = False, oldest: bool = True, probe: bool = False
) -> Rules:
    return Rules(np.uint64(0), 1.0, 0.75, 0.85, hysteresis, relative, 1, oldest, probe)


def view(owner: list[int], workers: int) -> Views:
    return new_views(1, np.array(owner, np.int64), workers)


def signals(levels: list[float], wanted: Rules, evidence: Floats | None = None) -> list[float]:
    known = np.zeros((2, len(levels))) if evidence is None else evidence
    loads = np.round(100 * np.array(levels)).astype(np.int64)
    return [float(value) for value in signal_workers(np.array(levels), loads, known, wanted)]


def test_thresholds_of_the_paper() -> None:
    """Below 0.75 a worker is idle, above 0.85 busy; the signal leads to 0.8."""
    found = signals([0.5, 0.75, 0.8, 0.85, 1.6, 0.0], rules())
    assert found == [1.6, 0.0, 0.0, 0.0, 0.5, LARGEST_RATIO]


def test_relative_thresholds_hold_under_overload() -> None:
    """All three are busy; compared with their mean 2, the first is idle and the last busy."""
    assert all(0 < value < 1 for value in signals([1.0, 2.0, 3.0], rules()))
    first, second, third = signals([1.0, 2.0, 3.0], rules(relative=True))
    assert (first > 1, second, third < 1) == (True, 0.0, True)
    # Below the thresholds nothing is scaled.
    assert signals([0.2, 0.8], rules(relative=True)) == signals([0.2, 0.8], rules())


def test_hysteresis_sums_what_exceeds_a_threshold() -> None:
    """0.25 above the threshold needs two slots for 0.5; a slot below takes its part away."""
    evidence = np.zeros((2, 1))
    steady = rules(hysteresis=0.5)
    assert signals([1.1], steady, evidence) == [0.0]
    assert signals([0.75], steady, evidence) == [0.0]
    assert signals([1.1], steady, evidence) == [0.0]
    assert signals([1.1], steady, evidence) != [0.0]
    assert signals([1.1], steady, evidence) != [0.0]
    assert signals([0.84], steady, evidence) == [0.0]


def test_the_newest_signal_counts() -> None:
    known = view([0, 0, 1, 1], 2)
    receive_signal(known, 0, 0, 0.5, 1)
    receive_signal(known, 0, 0, 2.0, 1)
    receive_signal(known, 0, 1, 0.5, 1)
    assert pair_workers(known, 0, rules()) == 1
    assert known.owned[0].tolist() == [3, 1]
    receive_signal(known, 0, 0, 0.5, 1)
    receive_signal(known, 0, 0, 0.0, 1)
    receive_signal(known, 0, 1, 2.0, 1)
    assert pair_workers(known, 0, rules()) == 0


def test_several_moves_lead_to_the_middle_of_the_thresholds() -> None:
    """Worker 0 has twice its load, so it gives half of its 10, to the other in all 3 at most."""
    known = view([0] * 10 + [1] * 3, 2)
    receive_signal(known, 0, 0, 0.5, 16)
    receive_signal(known, 0, 1, 2.0, 16)
    assert known.wanted[0].tolist() == [-5, 3]
    assert pair_workers(known, 0, rules()) == 3
    assert known.wanted[0].tolist() == [-2, 0]


def test_probing_moves_to_the_least_recently_busy() -> None:
    """Section 6.1.2: without an idle worker, the one that never reported to be busy receives."""
    known = view([0, 0, 1, 1, 2, 2], 3)
    receive_signal(known, 0, 0, 0.5, 1)
    receive_signal(known, 0, 2, 0.9, 1)
    assert pair_workers(known, 0, rules()) == 0
    assert pair_workers(known, 0, rules(probe=True)) == 2
    assert known.owned[0].tolist() == [1, 4, 1]


@settings(max_examples=60, deadline=None)
@given(
    workers=st.integers(1, 6),
    per_worker=st.integers(1, 5),
    received=st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0.0, 0.3, 0.9, 1.1, 9.0]))),
    most=st.integers(1, 4),
    oldest=st.booleans(),
    probe=st.booleans(),
)
def test_every_virtual_worker_has_one_worker(
    workers: int,
    per_worker: int,
    received: list[tuple[int, float]],
    most: int,
    oldest: bool,
    probe: bool,
) -> None:
    """Their number stays the same, every worker keeps one, and the counts are those of owners."""
    known = view([number // per_worker for number in range(workers * per_worker)], workers)
    for worker, signal in received:
        receive_signal(known, 0, worker % workers, signal, most)
        pair_workers(known, 0, rules(oldest=oldest, probe=probe))
        counts = np.bincount(known.owner[0], minlength=workers)
        assert counts.tolist() == known.owned[0].tolist()
        assert counts.sum() == workers * per_worker
        assert counts.min() >= 1
