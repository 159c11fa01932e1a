import json
from collections import Counter

import numpy as np
import pytest

from algorithms.partitioning.grouping import Messages, Workers
from algorithms.partitioning.groupings.frequency_aware import FrequencyAware
from algorithms.partitioning.groupings.head_aware import HeadAware
from algorithms.partitioning.groupings.key_frequencies import (
    PACKED,
    SAMPLE,
    KeyFrequencies,
    combined_frequencies,
    packed_frequencies,
    unpacked_frequencies,
)
from algorithms.partitioning.groupings.ring import Ring, position_of, ring_of
from algorithms.partitioning.replay import key_hashes
from tests.algorithms.partitioning.plain import place_on_ring
from tests.algorithms.partitioning.streams import zipf

PERIOD = 4 * SAMPLE


def observed(keys: object, state: KeyFrequencies | None = None) -> KeyFrequencies:
    state = state or KeyFrequencies.empty()
    rest = np.asarray(keys, np.uint64)
    while len(rest):
        part, rest = rest[: state.left], rest[state.left :]
        state = state.observed(part, PERIOD)
    return state


def test_frequent_keys_and_their_shares_are_known_after_some_periods() -> None:
    keys = zipf(1.2, 5_000, 40_000)
    state = observed(keys)
    true = Counter(keys.tolist())
    top = [key for key, _ in true.most_common(5)]
    assert state.hashes[:5].tolist() == top
    for key, share in zip(top, state.shares[:5].tolist(), strict=True):
        assert share == pytest.approx(true[key] / len(keys), abs=0.02)
    assert (state.stride, state.left + state.position) == (4, PERIOD)
    assert (np.diff(state.weights) <= 0).all()


def test_the_first_periods_are_short() -> None:
    state, ends = KeyFrequencies.empty(), []
    for message in range(8 * SAMPLE):
        before = state.period
        state = state.observed(np.array([7], np.uint64), PERIOD)
        if state.period != before:
            ends.append(message + 1)
    assert ends == [SAMPLE, 3 * SAMPLE, 7 * SAMPLE]
    assert (state.hashes.tolist(), state.shares.tolist()) == ([7], [1.0])


def test_old_frequencies_fade() -> None:
    state = observed([1] * 60_000)
    state = observed([2] * 60_000, state)
    assert state.hashes.tolist() == [2, 1]
    assert state.shares[0] > 0.95


def test_sources_are_averaged_and_their_samples_added() -> None:
    before = observed([1] * (SAMPLE + 10))
    one, two = observed([3] * 100, before), observed([4] * 200, before)
    merged = combined_frequencies(before, [one, two], PERIOD)
    assert merged.position == 310
    assert merged.sampled.tolist() == [1, 3, 4]
    assert merged.counts.sum() == one.counts.sum() + two.counts.sum() - before.counts.sum()
    closed = [observed([key] * 4_000, before) for key in (5, 6)]
    merged = combined_frequencies(before, closed, PERIOD)
    assert set(merged.hashes.tolist()) == {1, 5, 6}
    shares = dict(zip(merged.hashes.tolist(), merged.shares.tolist(), strict=True))
    assert shares[5] == pytest.approx(shares[6])
    many = [observed([9] * 900, before) for _ in range(3)]
    merged = combined_frequencies(before, many, PERIOD)
    assert (merged.period, merged.position) == (before.period + 1, 0), "together a whole period"


def test_packed_frequencies_are_bounded() -> None:
    state = observed(key_hashes(30_000))
    assert len(state.hashes) > PACKED
    row = json.loads(json.dumps(packed_frequencies(state)))
    assert len(json.dumps(row)) < 6_000
    again = unpacked_frequencies(row)
    assert again.hashes.tolist() == state.hashes[:PACKED].tolist()
    assert (again.position, again.stride, again.period) == (
        state.position, state.stride, state.period,
    )  # fmt: skip
    assert packed_frequencies(again) == row


def test_a_divided_key_has_parts_in_proportion_to_its_frequency() -> None:
    grouping, of = FrequencyAware(top=2, parts=4.0), Workers.of(10)
    keys = np.array([11, 22, 33], np.uint64)
    split = grouping.split_keys(of, keys, np.array([0.5, 0.12, 0.1]))
    assert split.keys.tolist() == [11, 22]
    assert np.diff(split.starts).tolist() == [20, 5]
    owners = [split.owners[a:b].tolist() for a, b in ((0, 20), (20, 25))]
    assert sorted(Counter(owners[0]).values()) == [2] * 10, "every worker has its share"
    assert len(set(owners[1])) == 5
    assert FrequencyAware(top=2, parts=0.0).split_keys(of, keys, np.ones(3)).keys.tolist() == []


def test_split_nodes_agree_without_communication() -> None:
    """Two sources that see the same frequencies divide keys among the same workers."""
    grouping, of = FrequencyAware(period=1_024), Workers.of(8)
    keys = zipf(1.5, 1_000, 100_000)
    states = [grouping.route(grouping.start(of), Messages(keys[s::2]))[1] for s in (0, 1)]
    owners = [set(state.split.owners[: state.split.starts[1]].tolist()) for state in states]
    assert owners[0] == owners[1]


def test_only_hot_keys_have_more_than_two_workers() -> None:
    grouping, of, keys = HeadAware(), Workers.of(20), zipf(1.3, 2_000, 200_000)
    _, state = grouping.route(grouping.start(of), Messages(keys[:50_000]))
    assigned, state = grouping.route(state, Messages(keys[50_000:]))
    pairs = Counter(
        key for key, _ in set(zip(keys[50_000:].tolist(), assigned.tolist(), strict=True))
    )
    several = {key for key, workers in pairs.items() if workers > 2}
    true = Counter(keys.tolist())
    assert several
    assert min(true[key] for key in several) > 0.5 * 0.2 * len(keys) / 20
    hottest = true.most_common(1)[0][0]
    assert pairs[hottest] == max(pairs.values()) >= 20 * true[hottest] / len(keys)


def test_owners_on_the_ring() -> None:
    ring = ring_of(Workers.of(5, [1, 1, 2, 2, 4]))
    shares = np.bincount(ring.owners, minlength=5) / len(ring.owners)
    assert shares == pytest.approx([0.1, 0.1, 0.2, 0.2, 0.4], abs=0.01)
    for key in key_hashes(200).tolist():
        position = position_of(key)
        above = [place for place, point in enumerate(ring.points.tolist()) if point >= position]
        assert place_on_ring(ring, position) == (above[0] if above else 0)
    last = int(ring.points[-1])
    assert place_on_ring(ring, last) == len(ring.points) - 1
    assert last == 2**64 - 1 or place_on_ring(ring, last + 1) == 0
    assert len(Ring.of(range(10_000), np.full(10_000, 1e-4)).points) <= 1 << 20


def test_small_batches_use_all_parts_of_a_key() -> None:
    """Each batch of two sources has fewer messages of the key than the key has parts."""
    grouping, of = FrequencyAware(), Workers.of(8)
    _, state = grouping.route(grouping.start(of), Messages(np.full(2_000, 7, np.uint64)))
    loads = np.zeros(8, np.int64)
    for _ in range(100):
        routed = [grouping.route(state, Messages(np.full(n, 7, np.uint64))) for n in (1, 2)]
        for assigned, _ in routed:
            loads += np.bincount(assigned, minlength=8)
        state = grouping.combined(state, [after for _, after in routed])
    assert loads.max() < 2 * loads.mean()
