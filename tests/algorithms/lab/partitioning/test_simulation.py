"""The queueing simulation against plain references, and the figures of consistent grouping."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem
from algorithms.lab.partitioning.simulation import Cluster, Course, Setting, simulate, spread
from algorithms.lab.partitioning.workloads import Stream, draw_zipf
from algorithms.partitioning.catalog import GROUPINGS, info_of
from algorithms.partitioning.consistent_grouping import ConsistentGrouping
from algorithms.partitioning.grouping import Messages
from algorithms.partitioning.replay import key_hashes
from tests.algorithms.lab.partitioning.reference import finish_times, route_with_signals

PAPER: dict[str, Any] = {
    "weighted": False, "hysteresis": 0.0, "relative": False, "moves": 1, "moved": "oldest",
    "probe": False, "virtual": 100,
}  # fmt: skip


def consistent(**values: Any) -> ConsistentGrouping:
    return ConsistentGrouping.from_mapping(PAPER | values)


def grouping(name: str, **values: Any) -> Any:
    return info_of(name).parameters.from_mapping({"weighted": False} | values)


def test_capacities_are_scaled_to_the_utilisation() -> None:
    cluster = Cluster.unequal(10, 3, 5.0, 0.8)
    assert cluster.capacity[0] == pytest.approx([5 / 17.6] * 3 + [1 / 17.6] * 7)
    assert cluster.capacity.sum() * 0.8 == pytest.approx(1.0)


def test_capacities_change_at_messages() -> None:
    cluster = Cluster.of([1, 1], 1.0, [(10, [3, 1])])
    assert cluster.served(4, 14) == pytest.approx([6 * 0.5 + 4 * 0.75, 6 * 0.5 + 4 * 0.25])
    assert cluster.served(20, 24) == pytest.approx([3.0, 1.0])


def test_a_queue_by_hand() -> None:
    """Two workers of capacity 1/2, all messages at the first: message i finishes at 2 i + 2."""
    stream = Stream(np.zeros(4, np.int32), np.zeros(1, np.uint64))
    course = simulate(stream, grouping("key"), Cluster.of([1, 1], 1.0), Setting(samples=2))
    assert course.message.tolist() == [2, 4]
    # At time 2 the first has left, at time 4 two.
    assert course.queue.tolist() == [[1, 0], [2, 0]]
    assert course.latency.tolist() == [[2.5, 0], [4.5, 0]]
    assert course.utilisation.tolist() == [[2, 0], [2, 0]]
    assert course.imbalance.tolist() == course.total_imbalance.tolist() == [1, 1]
    assert course.memory.tolist() == course.partial_results.tolist() == [1, 1]


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from([name for name, info in GROUPINGS.items() if not info.needs_times]),
    weights=st.lists(st.floats(0.1, 5), min_size=1, max_size=5),
    sources=st.integers(1, 3),
    changed=st.booleans(),
    samples=st.integers(1, 7),
    period=st.sampled_from([7, 50, 1_000]),
    seed=st.integers(0, 99),
)
def test_measures_are_those_of_the_messages(
    name: str,
    weights: list[float],
    sources: int,
    changed: bool,
    samples: int,
    period: int,
    seed: int,
) -> None:
    """Queues, latencies, loads, memory and partial results, recomputed with lists and sets."""
    stream = draw_zipf(1.0, 20, 150, seed)
    changes = [(60, weights[::-1])] if changed else []
    cluster = Cluster.of(weights, 0.9, changes)
    setting = Setting(slot=20, sources=sources, samples=samples, period=period)
    recorder: list[int] = []
    course = simulate(stream, _recorded(name, recorder, stream, cluster, setting), cluster, setting)
    finish = finish_times(recorder, cluster)
    first = 0
    for point, stop in enumerate(course.message.tolist()):
        for worker in range(len(weights)):
            mine = [i for i in range(first, stop) if recorder[i] == worker]
            waiting = sum(recorder[i] == worker and finish[i] > stop for i in range(stop))
            assert course.queue[point, worker] == waiting
            latency = sum(finish[i] - i for i in mine) / max(1, len(mine))
            assert course.latency[point, worker] == pytest.approx(latency)
            assert course.load[point, worker] == recorder[:stop].count(worker)
        pairs = {(stream.numbers[i], recorder[i]) for i in range(stop)}
        results = {(i // period, stream.numbers[i], recorder[i]) for i in range(stop)}
        assert course.memory[point] == len(pairs)
        assert course.partial_results[point] == len(results)
        first = stop


def _recorded(
    name: str, recorder: list[int], stream: Stream, cluster: Cluster, setting: Setting
) -> Any:
    """Return a grouping after writing the workers of all messages into `recorder`."""
    if name == "consistent_grouping":
        chosen = consistent(virtual=4)
        recorder += route_with_signals(stream, chosen, cluster, setting.slot, setting.sources)[0]
        return chosen
    chosen = grouping(name)
    workers = np.empty(len(stream), np.int64)
    for source in range(setting.sources):
        part = Messages(stream.keys[source :: setting.sources])
        workers[source :: setting.sources], _ = chosen.route(chosen.start(cluster.workers()), part)
    recorder += workers.tolist()
    return chosen


@settings(max_examples=25, deadline=None)
@given(
    weights=st.lists(st.floats(0.2, 5), min_size=2, max_size=4),
    sources=st.integers(1, 3),
    slot=st.integers(5, 40),
    used=st.floats(0.3, 1.5),
    moved=st.sampled_from(["oldest", "newest"]),
    seed=st.integers(0, 99),
)
def test_signals_ride_on_acknowledgements(
    weights: list[float], sources: int, slot: int, used: float, moved: str, seed: int
) -> None:
    """Decisions and moves are those of the reference, which keeps every outstanding message."""
    stream, cluster = draw_zipf(1.2, 30, 300, seed), Cluster.of(weights, used)
    chosen = consistent(virtual=3, eps=0.1, moved=moved)
    workers, moves = route_with_signals(stream, chosen, cluster, slot, sources)
    course = simulate(stream, chosen, cluster, Setting(slot, sources, samples=300))
    assert np.diff(course.load, axis=0, prepend=0).argmax(axis=1).tolist() == workers
    assert course.moves[-1] == moves
    # Measuring seldom or often changes nothing.
    seldom = simulate(stream, chosen, cluster, Setting(slot, sources, samples=7))
    assert seldom.load[-1].tolist() == course.load[-1].tolist()
    assert seldom.moves[-1] == moves


def test_a_signal_needs_a_message_that_is_not_acknowledged() -> None:
    """The fast worker has acknowledged all messages of its only slot before the slot ends."""
    stream = Stream(np.arange(8, dtype=np.int32), key_hashes(8))
    cluster = Cluster.of([1.0, 1e6], 0.001)
    course = simulate(stream, consistent(virtual=2), cluster, Setting(slot=8, samples=1))
    assert course.moves[-1] == 0


def standard(chosen: Any, **values: Any) -> Course:
    """Return the course of the figure to reach: 3 of 10 workers are 5 times faster."""
    stream = draw_zipf(1.0, 100_000, 600_000)
    return simulate(stream, chosen, Cluster.unequal(10, 3, 5.0), Setting(samples=60, **values))


def test_consistent_grouping_reaches_the_demanded_imbalance() -> None:
    """Below 0.05 over the last 100K of 600K messages; key above 1, shuffle above 0.3."""
    assert standard(consistent()).imbalance_over(10) < 0.05
    narrow = standard(consistent(hysteresis=0.5, moves=16, lower=0.77, upper=0.83, probe=True))
    assert narrow.imbalance_over(10) < 0.05
    assert narrow.imbalance[10:].max() < 0.15
    assert standard(grouping("key")).imbalance.min() > 1
    assert standard(grouping("shuffle")).imbalance.min() > 0.3


def test_moves_start_again_when_capacities_change() -> None:
    stream = draw_zipf(1.0, 10_000, 400_000)
    fast, slow = [5.0] * 3 + [1.0] * 7, [1.0] * 7 + [5.0] * 3
    cluster = Cluster.of(fast, 0.8, [(200_000, slow)])
    chosen = consistent(hysteresis=0.5, moves=16, probe=True)
    course = simulate(stream, chosen, cluster, Setting(samples=40))
    before, after = int(course.moves[19]), int(course.moves[-1])
    assert course.moves[14] == before
    assert after - before > 200
    assert course.moves[-5] == after
    assert course.imbalance[20] > 1
    assert course.imbalance_over(5) < 0.06


def test_spread() -> None:
    assert spread(np.array([1.0, 2.0, 6.0])) == 5.0


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (lambda: Cluster.of([1, 1], 0.0), "utilisation"),
        (lambda: Cluster.of([1, 0]), "capacities[1]"),
        (lambda: Cluster.of([1], 0.8, [(0, [1])]), "changes"),
        (lambda: Cluster.of([1], 0.8, [(5, [1, 2])]), "capacities"),
        (lambda: Cluster.unequal(2, 3, 5.0), "fast"),
        (lambda: Setting(slot=0), "slot"),
        (lambda: simulate(Stream(np.zeros(0, np.int32), key_hashes(1)), grouping("key"),
                          Cluster.of([1])), "stream"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call: Any, where: str) -> None:
    with pytest.raises(BadProblem) as caught:
        call()
    assert caught.value.where == where
