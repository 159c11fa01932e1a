"""Characteristics that past rates show."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.admission.measured import measured
from algorithms.admission.metadata import CHARACTERISTICS, StreamMetadata, Transition


def test_ten_characteristics_are_declared() -> None:
    assert len({row.name for row in CHARACTERISTICS}) == 10
    assert all(row.title and row.hint for row in CHARACTERISTICS)


def test_a_jumping_stream_shows_its_period_and_its_high_part() -> None:
    """30 periods low, 10 high, with noise of a tenth."""
    rng = np.random.default_rng(3)
    base = np.tile(np.repeat([100.0, 300.0], [30, 10]), 9)
    result = measured(base + rng.normal(0, 10, len(base)), 10.0)
    row = result.metadata
    assert row.period_s == pytest.approx(400, rel=0.03)
    assert row.high_s == pytest.approx(100, rel=0.05)
    assert row.transition is Transition.JUMP
    assert row.average == pytest.approx(150, rel=0.05)
    assert row.minimum == pytest.approx(90, rel=0.1)
    assert result.strength is not None
    assert result.strength > 0.9
    assert row.burst_s is None


def test_a_wave_is_a_trend() -> None:
    rates = 500 + 200 * np.sin(np.arange(360) * 2 * np.pi / 60)
    row = measured(rates, 60.0).metadata
    assert row.period_s == pytest.approx(3_600, rel=0.02)
    assert row.transition is Transition.TREND


def test_bursts_without_a_period_have_mean_lengths() -> None:
    rng = np.random.default_rng(5)
    lengths = rng.geometric(1 / np.tile([4, 12], 60))
    rates = np.concatenate(
        [np.full(n, 800.0 if i % 2 == 0 else 0.0) for i, n in enumerate(lengths)]
    )
    row = measured(rates, 10.0).metadata
    assert row.period_s is None
    assert row.burst_s == pytest.approx(lengths[::2].mean() * 10)
    assert row.pause_s == pytest.approx(lengths[1::2].mean() * 10)


@pytest.mark.parametrize("rates", [[], [float("nan")] * 4])
def test_without_a_rate_nothing_is_known(rates: list[float]) -> None:
    assert measured(np.array(rates), 10.0).metadata == StreamMetadata()


def test_steady_rates_have_neither_period_nor_bursts() -> None:
    row = measured(np.full(50, 7.0), 10.0).metadata
    assert row == StreamMetadata(rate=7, average=7, minimum=7, maximum=7, peak=7)


@given(st.lists(st.one_of(st.floats(0, 1e9), st.just(float("nan"))), max_size=60))
def test_any_rates_have_consistent_characteristics(rates: list[float]) -> None:
    """`StreamMetadata` refuses contradictory ones."""
    row = measured(np.array(rates), 10.0).metadata
    assert (row.average is None) == bool(np.isnan(rates).all())
