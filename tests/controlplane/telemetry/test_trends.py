"""A trend is a slope that noise alone does not make."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.telemetry.trends import LEAST, trend_of


@given(
    slope=st.floats(0.01, 100),
    begin=st.floats(-1000, 1000),
    count=st.integers(LEAST, 100),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_line_with_little_noise_is_found(
    slope: float, begin: float, count: int, seed: int
) -> None:
    times = [1e9 + 10 * i for i in range(count)]
    noise = np.random.default_rng(seed).normal(0, slope, count)
    values = [begin + slope * 10 * i + noise[i] for i in range(count)]
    found = trend_of(times, values)
    assert found is not None
    assert found.slope == pytest.approx(slope, rel=0.2)
    end = begin + slope * 10 * (count - 1)
    assert found.after(300) == pytest.approx(end + 300 * slope, abs=300 * 0.2 * slope + 3 * slope)


def test_noise_is_seldom_a_trend() -> None:
    """About one in twenty, as twice the standard error promises."""
    chance = np.random.default_rng(7)
    times = [10.0 * i for i in range(60)]
    found = sum(
        trend_of(times, chance.normal(100, 10, 60).tolist()) is not None for _ in range(400)
    )
    assert 4 <= found <= 40


@pytest.mark.parametrize(("at", "is_step"), [(20, True), (50, True), (None, False)])
def test_two_levels_are_a_step(at: int | None, *, is_step: bool) -> None:
    chance = np.random.default_rng(3)
    line = np.linspace(50, 100, 60) if at is None else np.where(np.arange(60) < at, 50, 100)
    found = trend_of([10.0 * i for i in range(60)], line + chance.normal(0, 4, 60))
    assert found is not None
    assert (found.slope > 0, found.is_step) == (True, is_step)


def test_few_or_simultaneous_samples_are_none() -> None:
    assert trend_of([0.0, 1.0, 2.0], [0.0, 1.0, 2.0]) is None
    assert trend_of([5.0] * 20, [float(i) for i in range(20)]) is None
    assert trend_of([float(i) for i in range(20)], [3.0] * 20) is None
