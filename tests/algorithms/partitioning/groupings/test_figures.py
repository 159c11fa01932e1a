"""Figures of the papers that the groupings reach, and those beyond the papers."""

from typing import Any

import numpy as np
import pytest

from algorithms.balance import imbalance
from algorithms.lab.partitioning.workloads import draw_burst_rates, spread_evenly
from algorithms.partitioning.grouping import Grouping, Hashes, Messages, Workers
from algorithms.partitioning.groupings.frequency_aware import FrequencyAware
from algorithms.partitioning.groupings.head_aware import HeadAware
from algorithms.partitioning.groupings.panes import Panes
from algorithms.partitioning.groupings.random_choices import RandomChoices
from algorithms.partitioning.groupings.rate_aware import RateAware
from algorithms.partitioning.replay import load_over_share, load_ratio, memory
from tests.algorithms.partitioning.streams import zipf


@pytest.mark.parametrize("n", [5, 10, 100])
def test_memory_of_random_choices(n: int) -> None:
    """A scaled stream of paper 002: p1 = 9.3 %, 7.6 messages per key that occurs (22M / 2.9M)."""
    keys = zipf(1.045, 800_000, 3_000_000)
    distinct, counts = np.unique(keys, return_counts=True)
    assert 0.092 < counts.max() / len(keys) < 0.096
    assert 6.5 < len(keys) / len(distinct) < 9
    grouping, of = RandomChoices(eps=0.01), Workers.of(n)
    assigned, state = grouping.route(grouping.start(of), Messages(keys))
    assert imbalance(load_over_share(state.load, of)) < 0.01 * len(keys) / n + 1
    assert memory(keys, assigned) <= 1.5 * len(distinct)


def test_balance_and_memory_of_head_aware() -> None:
    """z = 1 over 100,000 keys, 100 workers, 10M messages."""
    keys, of, grouping = zipf(1.0, 100_000, 10_000_000), Workers.of(100), HeadAware()
    assigned, _ = grouping.route(grouping.start(of), Messages(keys))
    assert imbalance(load_over_share(np.bincount(assigned, minlength=100), of)) / len(keys) <= 1e-5
    assert memory(keys, assigned) <= 1.6 * len(np.unique(keys))


def ratio(grouping: Grouping[Any], keys: Hashes, n: int) -> float:
    """Return the load ratio after a warm-up in which frequencies are collected."""
    of, warm = Workers.of(n), len(keys) // 4
    _, state = grouping.route(grouping.start(of), Messages(keys[:warm]))
    assigned, _ = grouping.route(state, Messages(keys[warm:]))
    return load_ratio(np.bincount(assigned, minlength=n), of)


@pytest.mark.parametrize("n", [8, 16, 32])
def test_load_ratio_of_frequency_aware(n: int) -> None:
    """Figure 15 of paper 001: 16K keys, the five most frequent are divided."""
    for z in (0.2, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0):
        keys = zipf(z, 16_000, 400_000, seed=1)
        for parts in (4.0, 8.0):
            assert ratio(FrequencyAware(top=5, parts=parts), keys, n) < 0.5, (z, parts)
        if z >= 1.2:
            assert ratio(FrequencyAware(top=0), keys, n) > 0.5, z


def test_load_ratio_of_rate_aware_panes() -> None:
    """Figure 12 of paper 001: 16 nodes, bursts of five times the rate, windows of 32 s."""
    times = spread_evenly(draw_burst_rates(160, 1))
    stream, of = Messages(np.zeros(len(times), np.uint64), times), Workers.of(16)

    def ratios(grouping: Grouping[Any]) -> list[float]:
        assigned, _ = grouping.route(grouping.start(of), stream)
        loads = np.zeros((160, 16))
        np.add.at(loads, (times // 1_000, assigned), 1)
        total = np.cumsum(loads, axis=0)
        return [load_ratio(total[s] - total[s - 32], of) for s in range(64, 160)]

    plain = ratios(Panes(window_ms=32_000, slide_ms=1_000))
    compensated = ratios(RateAware(window_ms=32_000, slide_ms=1_000))
    assert max(compensated) <= 0.07
    assert np.mean(plain) >= 0.5
