"""Methods of forecasting, and the choice among them."""

import numpy as np

from algorithms.admission.forecasting.fit import fitted_factors
from algorithms.admission.forecasting.holt import smoothed
from algorithms.admission.forecasting.selection import (
    NaiveState,
    Start,
    choose,
    holt,
    naive,
    seasonal,
)
from algorithms.vocabulary import Floats

METHODS: dict[str, Start] = {"naive": naive, "holt": holt, "seasonal": seasonal(12)}


def streams() -> Floats:
    """Steps, a trend and a season, each over ten seasons of twelve periods."""
    rng = np.random.default_rng(3)
    time = np.arange(120)
    steps = np.repeat(rng.uniform(100, 900, 15), 8)
    trend = 100 + 3 * time + rng.normal(0, 2, 120)
    season = 300 + 100 * np.sin(2 * np.pi * time / 12) + rng.normal(0, 2, 120)
    return np.stack([steps, trend, season])


def test_each_stream_gets_the_method_that_fits() -> None:
    chosen, errors = choose(streams(), METHODS, horizon=3, tested=48)
    names = [list(METHODS)[place] for place in chosen]
    assert names == ["naive", "holt", "seasonal"]
    assert (errors.min(axis=0) == errors[chosen, np.arange(3)]).all()


def test_a_season_is_forecast() -> None:
    history = streams()[2:]
    state = seasonal(12)(history)
    wanted = 300 + 100 * np.sin(2 * np.pi * np.arange(120, 132) / 12)
    assert np.abs(state.forecast(12)[0] - wanted).mean() < 10
    deviation = state.deviation(24)[0]
    assert (np.diff(deviation) >= 0).all()


def test_the_naive_forecast_is_the_last_rate() -> None:
    state = NaiveState.start(np.array([5.0])).observed(np.array([7.0])).observed(np.array([np.nan]))
    assert state.forecast(2).tolist() == [[7.0, 7.0]]
    assert state.deviation(4)[0, 3] == 2 * state.deviation(1)[0, 0]


def one_step_error(history: Floats, alpha: float, gamma: float) -> float:
    state, squares = smoothed(history[:, :1], alpha, gamma), 0.0
    for period in range(1, history.shape[1]):
        squares += float(((history[:, period] - state.forecast(1)[:, 0]) ** 2).sum())
        state = state.observed(history[:, period])
    return squares


def test_fitted_factors_are_better_than_any_of_a_grid() -> None:
    history = streams()
    alpha, gamma = fitted_factors(history)
    for place in range(len(history)):
        row = history[place : place + 1]
        best = min(
            one_step_error(row, a, g)
            for a in np.linspace(0.05, 1, 12) for g in np.linspace(0, 1, 12)
        )  # fmt: skip
        found = one_step_error(row, float(alpha[place]), float(gamma[place]))
        assert found <= 1.05 * best


def test_a_short_or_constant_history_has_the_default_factors() -> None:
    alpha, gamma = fitted_factors(np.array([[5.0] * 20, [np.nan] * 15 + [1.0, 2.0, 3.0, 4.0, 5.0]]))
    assert alpha.tolist() == [0.5, 0.5]
    assert gamma.tolist() == [0.1, 0.1]
