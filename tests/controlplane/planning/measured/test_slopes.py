"""Slopes of costs: against known fixed and marginal costs, with noise and outliers."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.planning.measured.costs import (
    batch_seconds,
    line_through,
    merge_seconds,
    node_work,
    operator_seconds,
    split_seconds,
)
from tests.support.series import batches_of

FIXED_S, COST_S = 0.04, 0.0004


def samples(records: Any, seconds: Any, **more: Any) -> list[dict[str, Any]]:
    """Return samples of batches of two seconds with one node."""
    return [
        {"loads": [n / 2], "busy": [s / 2], "span_s": 2.0, "tasks": [1]}
        | {name: values[index] for name, values in more.items()}
        for index, (n, s) in enumerate(zip(records, seconds, strict=True))
    ]


@given(st.integers(0, 2**32 - 1), st.integers(0, 12))
@settings(max_examples=40, deadline=None)
def test_a_line_shows_fixed_and_marginal_cost_despite_a_warm_up(seed: int, slow: int) -> None:
    """The first batches take seconds more; others differ by a tenth of the fixed time."""
    rng = np.random.default_rng(seed)
    records = rng.uniform(20, 200, 60)
    seconds = FIXED_S + COST_S * records + rng.normal(0, FIXED_S / 10, 60)
    seconds[:slow] += rng.uniform(0.5, 3, slow)
    line = line_through(records, seconds)
    assert line is not None
    assert line.is_sure
    assert line.slope == pytest.approx(COST_S, abs=5 * line.error)
    assert line.fixed == pytest.approx(FIXED_S, rel=0.25)


def test_no_slope_without_samples_or_differences() -> None:
    rng = np.random.default_rng(1)
    assert line_through(np.arange(1.0, 20.0), np.ones(19)) is None
    assert line_through(rng.uniform(100, 104, 60), rng.uniform(0, 1, 60)) is None


def test_noise_is_no_slope() -> None:
    rng = np.random.default_rng(2)
    lines = [line_through(rng.uniform(20, 200, 60), rng.uniform(0, 1, 60)) for _ in range(200)]
    assert not any(line is None or line.is_sure for line in lines)


def test_a_quiet_node_shows_its_cost_by_its_slope() -> None:
    rng = np.random.default_rng(3)
    records = rng.uniform(20, 200, 60)
    work = node_work(batches_of(samples(records, FIXED_S + COST_S * records)))[0]
    assert work.busy_quotient is None
    assert work.line is not None
    assert (work.line.slope, work.line.fixed) == pytest.approx((COST_S, FIXED_S))
    assert work.quotient > 1.4 * COST_S
    assert operator_seconds(
        batches_of(samples(records, FIXED_S + COST_S * records)), {}
    ) == pytest.approx(COST_S)


def test_the_quotient_of_a_busy_node_counts_if_its_records_do_not_differ() -> None:
    """Otherwise it would be that of batches that are slow for other reasons."""
    same = node_work(batches_of(samples([2_000] * 30, [0.8] * 30)))[0]
    assert (same.busy_quotient, same.line) == (0.0004, None)
    rng = np.random.default_rng(4)
    seconds = FIXED_S + COST_S * np.linspace(20, 200, 60)
    seconds[::10] += rng.uniform(0.5, 1, 6)
    work = node_work(batches_of(samples(np.linspace(20, 200, 60), seconds)))[0]
    assert work.busy_quotient is None
    assert work.line is not None
    assert work.line.slope == pytest.approx(COST_S)


def test_a_node_whose_time_does_not_depend_on_its_records_shows_no_cost() -> None:
    """It is busy for half of its time with the fixed cost of micro-batches."""
    rng = np.random.default_rng(5)
    work = node_work(batches_of(samples(rng.uniform(20, 200, 60), rng.uniform(0.8, 1.2, 60))))[0]
    assert work.busy_quotient is None
    assert work.line is not None
    assert not work.line.is_sure


def test_only_samples_with_the_present_number_of_tasks_count() -> None:
    records = np.linspace(20, 200, 60)
    before = samples(records, 0.1 + 9 * COST_S * records, tasks=[[9]] * 60)
    work = node_work(batches_of(before + samples(records, COST_S * records)))[0]
    assert work.line is not None
    assert work.line.samples == 60
    assert work.line.slope == pytest.approx(COST_S)


def test_split_nodes_and_aggregator_nodes_have_slopes_too() -> None:
    number = np.linspace(10, 100, 40)
    share = (0.01 + 0.0002 * number).tolist()
    rows = list(zip(number, share, strict=True))
    split = [{"split_loads": [n], "split_utilisation": [s]} for n, s in rows]
    merging = [{"merged": [n], "merge_busy": [s]} for n, s in rows]
    assert (
        split_seconds(batches_of(split), None)
        == merge_seconds(batches_of(merging))
        == pytest.approx(0.0002)
    )


def test_a_few_slow_batches_of_a_split_node_are_no_cost() -> None:
    """A busy machine delays two batches of few records: an armed ladder must not drop for that."""
    usual = [{"split_loads": [100.0], "split_utilisation": [0.02]}] * 15
    slow = [{"split_loads": [3.0], "split_utilisation": [0.9]}] * 2
    assert split_seconds(batches_of(usual + slow), None) is None, "too few for a slope"
    assert split_seconds(batches_of(usual + 4 * slow), None) is None, "mostly not busy"
    merging = [{"merged": [100.0], "merge_busy": [0.002]}] * 15
    assert merge_seconds(batches_of([*merging, {"merged": [3.0], "merge_busy": [0.5]}])) is None
    full = [{"split_loads": [100.0], "split_utilisation": [0.8]}] * 18
    assert split_seconds(batches_of(full + slow), None) == pytest.approx(0.008)


def test_batches_under_an_emulated_capacity_show_no_cost() -> None:
    """A ladder would drop most records for the 9 records/s that were emulated before."""
    emulated = [{"split_loads": [9.0], "split_utilisation": [1.0]}] * 40
    free = [{"split_loads": [100.0], "split_utilisation": [0.4]}] * 40
    batches = batches_of(emulated + free)
    changed_at = datetime.fromtimestamp(batches.times[40], UTC)
    assert split_seconds(batches, changed_at) == pytest.approx(0.004)
    assert split_seconds(batches_of(emulated), changed_at) is None


def test_the_time_of_batches_is_a_line_over_that_of_the_longest_node() -> None:
    busy = np.linspace(0.1, 2.0, 60)
    given_ = samples(100 + 0 * busy, busy, work_ms=((0.4 + 1.25 * busy) * 1000).tolist())
    batch = batch_seconds(batches_of(given_))
    assert batch is not None
    assert (batch.outside_s, batch.growth) == pytest.approx((0.4, 1.25))
    # Of four seconds, a node with a fixed time of 0.2 s has 3.35 s, 1.25 of them per own second.
    assert batch.usable(0.2, 4.0) == pytest.approx((4 - 0.4 - 0.25) / 1.25 / 4)
    # Batches cannot be shorter than an empty one.
    assert batch.usable(0.2, 0.1) == pytest.approx(0.5 / 1.25)
    constant = samples([100] * 30, [0.2] * 30, work_ms=[700.0] * 30)
    assert batch_seconds(batches_of(constant)) == (0.5, 1.0, 0.7)
    assert batch_seconds(batches_of([{}])) is None
