"""Holt's linear trend, for one stream and for many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.admission.forecasting.holt import HoltState, smoothed

RATES = st.floats(0, 1e6, allow_nan=False)


def test_levels_and_trends_follow_the_equations() -> None:
    """X = 10, 12, 15, 15 with both factors 0.5."""
    state = HoltState.start(np.array([10.0]), 0.5, 0.5)
    found = [(state.level[0], state.trend[0])]
    for rate in (12.0, 15.0, 15.0):
        state = state.observed(np.array([rate]))
        found.append((state.level[0], state.trend[0]))
    assert found == [(10, 0), (11, 0.5), (13.25, 1.375), (14.8125, 1.46875)]
    assert state.forecast(3)[0, 2] == 19.21875


@given(st.lists(st.lists(RATES, min_size=5, max_size=5), min_size=1, max_size=4))
def test_streams_do_not_influence_each_other(rows: list[list[float]]) -> None:
    history = np.array(rows)
    together = smoothed(history, 0.4, 0.2)
    for place, row in enumerate(history):
        alone = smoothed(row[None], 0.4, 0.2)
        assert together.level[place] == alone.level[0]
        assert together.trend[place] == alone.trend[0]


def test_a_gap_changes_nothing() -> None:
    history = np.array([[np.nan, 10.0, np.nan, 12.0, np.nan]])
    state = smoothed(history, 0.5, 0.5)
    assert (state.level[0], state.trend[0]) == (11.0, 0.5)


def test_forecasts_are_never_negative() -> None:
    state = smoothed(np.array([[10.0, 5.0, 1.0, 0.0]]), 0.9, 0.9)
    assert (state.forecast(10) >= 0).all()


@pytest.mark.parametrize("alpha", [0.5, 0.8])
def test_the_interval_covers_what_it_says(alpha: float) -> None:
    """Of the values of random walks about 68 % are within one deviation; at least half here."""
    rng = np.random.default_rng(1)
    walks = 1_000 + np.cumsum(rng.normal(0, 1, (2_000, 60)), axis=1)
    state = smoothed(walks[:, :50], alpha, 0.05)
    errors = walks[:, 50:55] - state.forecast(5)
    inside = (np.abs(errors) <= state.deviation(5)).mean(axis=0)
    assert ((inside > 0.5) & (inside < 0.95)).all(), inside
