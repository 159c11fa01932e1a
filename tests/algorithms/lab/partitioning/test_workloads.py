"""Streams of keys: seeds, shares, replays, and the rates of figure 12 of paper 001."""

import numpy as np
import pytest

from algorithms.errors import BadProblem
from algorithms.lab.partitioning.workloads import (
    Stream,
    draw_burst_rates,
    draw_drifting,
    draw_zipf,
    spread_evenly,
    zipf_shares,
)
from algorithms.partitioning.replay import key_hashes


def test_zipf_shares_follow_the_law() -> None:
    shares = zipf_shares(1.0, 3)
    assert shares == pytest.approx([6 / 11, 3 / 11, 2 / 11])
    assert zipf_shares(0.0, 4) == pytest.approx([0.25] * 4)


def test_a_zipf_stream_has_its_shares() -> None:
    stream = draw_zipf(1.0, 100, 200_000, 1)
    counts = np.bincount(stream.numbers, minlength=100)
    assert len(stream) == counts.sum() == 200_000
    assert counts / 200_000 == pytest.approx(zipf_shares(1.0, 100), abs=0.005)


def test_a_seed_has_one_stream() -> None:
    first, second, other = (draw_zipf(1.0, 50, 1_000, seed) for seed in (3, 3, 4))
    assert np.array_equal(first.keys, second.keys)
    assert not np.array_equal(first.numbers, other.numbers)
    assert not np.array_equal(first.hashes, other.hashes)


def test_hashes_differ() -> None:
    assert len(np.unique(key_hashes(100_000))) == 100_000
    assert not np.isin(key_hashes(1_000, 1), key_hashes(1_000, 2)).any()


def test_frequent_keys_drift() -> None:
    """Rank 0 of phase p is key 7 p."""
    stream = draw_drifting(2.0, 100, 4_000, phases=4, shift=7)
    tops = [int(np.bincount(part).argmax()) for part in np.split(stream.numbers, 4)]
    assert tops == [0, 7, 14, 21]


def test_a_short_stream_is_replayed() -> None:
    """Times of the replay continue after those of the stream."""
    stream = Stream(np.array([2, 0, 1], np.int32), key_hashes(3), np.array([10, 10, 14]))
    replayed = stream.first(7)
    assert replayed.numbers.tolist() == [2, 0, 1, 2, 0, 1, 2]
    assert replayed.times is not None
    assert replayed.times.tolist() == [10, 10, 14, 15, 15, 19, 20]
    assert stream.first(2).numbers.tolist() == [2, 0]
    assert Stream(stream.numbers, stream.hashes).first(4).times is None


def test_rates_jump_to_five_times() -> None:
    rates = draw_burst_rates(3_000, 2)
    high = rates > 22_000
    assert 18_000 <= rates[~high].min() <= rates[~high].max() <= 22_000
    assert 90_000 <= rates[high].min() <= rates[high].max() <= 110_000
    assert high.mean() == pytest.approx(0.1, abs=0.02)


def test_times_are_even_within_a_second() -> None:
    assert spread_evenly(np.array([2, 0, 4])).tolist() == [0, 500, 2000, 2250, 2500, 2750]


@pytest.mark.parametrize(
    ("where", "arguments"),
    [("distinct", (1.0, 0, 10)), ("messages", (1.0, 10, 0)), ("messages", (1.0, 10, 10**9))],
)
def test_sizes_out_of_range_are_refused(where: str, arguments: tuple[float, int, int]) -> None:
    with pytest.raises(BadProblem) as caught:
        draw_zipf(*arguments)
    assert caught.value.where == where
