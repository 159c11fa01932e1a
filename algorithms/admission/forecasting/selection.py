"""The forecaster of each stream, chosen by back-testing.

One of them repeats the last rate, one is additive seasonal Holt-Winters for many streams of one
season length.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, Self

import numpy as np

from algorithms.admission.forecasting.fit import ALPHA, GAMMA
from algorithms.admission.forecasting.holt import ERROR_WEIGHT, HoltState, smoothed
from algorithms.vocabulary import Floats, Ints


@dataclass(frozen=True, eq=False)
class NaiveState:
    """The last rates float64[s], and the mean squares of their changes float64[s]."""

    last: Floats
    error: Floats

    @classmethod
    def start(cls, first: Floats) -> Self:
        """Return the state after the first observation."""
        return cls(np.asarray(first, np.float64), np.zeros(len(first)))

    def observed(self, rates: Floats) -> Self:
        """Return the state after one more observation per stream; NaN: none in this period."""
        known = ~np.isnan(rates)
        change = np.where(known, rates - self.last, 0.0)
        squares = self.error + ERROR_WEIGHT * (change**2 - self.error)
        return type(self)(self.last + change, np.where(known, squares, self.error))

    def forecast(self, horizon: int) -> Floats:
        """Return the rates of the next periods, float64[s, horizon]."""
        return np.repeat(self.last[:, None], horizon, axis=1)

    def deviation(self, horizon: int) -> Floats:
        """Return the standard deviations of the errors, float64[s, horizon]: a random walk's."""
        return np.sqrt(self.error[:, None] * np.arange(1, horizon + 1))


# Smoothing of seasons: a tenth of a period's difference goes into its season.
DELTA: Final = 0.1


class Forecaster(Protocol):
    """The state of one method for s streams."""

    def observed(self, rates: Floats) -> Self:
        """Return the state after one more observation per stream."""

    def forecast(self, horizon: int) -> Floats:
        """Return the rates of the next periods, float64[s, horizon]."""

    def deviation(self, horizon: int) -> Floats:
        """Return the standard deviations of their errors, float64[s, horizon]."""


# Returns the state after a history float64[s, t].
Start = Callable[[Floats], Forecaster]


def naive(history: Floats) -> NaiveState:
    """Return the state of the naive method after a history without gaps."""
    state = NaiveState.start(history[:, 0])
    for period in range(1, history.shape[1]):
        state = state.observed(history[:, period])
    return state


def holt(history: Floats) -> HoltState:
    """Return the state of Holt's method with the default factors."""
    return smoothed(history, ALPHA, GAMMA)


def seasonal(season: int) -> Start:
    """Return the start of seasonal Holt-Winters with `season` periods in a season."""

    def start(history: Floats) -> SeasonalState:
        state = SeasonalState.start(history[:, :season], ALPHA, GAMMA, DELTA)
        for period in range(season, history.shape[1]):
            state = state.observed(history[:, period])
        return state

    return start


def choose(
    history: Floats, methods: Mapping[str, Start], horizon: int, tested: int
) -> tuple[Ints, Floats]:
    """Return the best method of each stream, int64[s], and the errors float64[methods, s].

    Each method forecasts the last `tested` periods of a history float64[s, t] without gaps, from
    every period before them; the error is the mean absolute error over all periods of the horizon.
    Of equal methods the first one is chosen. `tested` is at least the horizon, and the history
    has at least one season more.
    """
    first = history.shape[1] - tested
    errors = np.zeros((len(methods), len(history)))
    for place, start in enumerate(methods.values()):
        state = start(history[:, :first])
        for period in range(first, history.shape[1] - horizon + 1):
            actual = history[:, period : period + horizon]
            errors[place] += np.abs(actual - state.forecast(horizon)).mean(axis=1)
            state = state.observed(history[:, period])
    return errors.argmin(axis=0), errors / max(1, tested - horizon + 1)


@dataclass(frozen=True, eq=False)
class SeasonalState:
    """Levels, trends and seasons of s streams; m periods are a season.

    `level`, `trend` float64[s]; `seasons` float64[s, m]: what the periods of a season differ from
    the level by, the next period's first; `alpha`, `gamma`, `delta`: smoothing factors of level,
    trend and season; `error` float64[s]: as that of `HoltState`.
    """

    level: Floats
    trend: Floats
    seasons: Floats
    alpha: float
    gamma: float
    delta: float
    error: Floats

    @classmethod
    def start(cls, season: Floats, alpha: float, gamma: float, delta: float) -> Self:
        """Return the state after the first season, float64[s, m]."""
        level = season.mean(axis=1)
        zero = np.zeros(len(season))
        return cls(level, zero, season - level[:, None], alpha, gamma, delta, zero)

    def observed(self, rates: Floats) -> Self:
        """Return the state after one more observation per stream; NaN: none in this period."""
        known = ~np.isnan(rates)
        season = self.seasons[:, 0]
        forecast = self.level + self.trend + season
        error = np.where(known, rates - forecast, 0.0)
        level = self.level + self.trend + self.alpha * error
        trend = self.trend + self.gamma * (level - self.level - self.trend)
        newest = season + self.delta * (1 - self.alpha) * error
        seasons = np.concatenate([self.seasons[:, 1:], newest[:, None]], axis=1)
        squares = self.error + ERROR_WEIGHT * (error**2 - self.error)
        return type(self)(
            level, trend, seasons, self.alpha, self.gamma, self.delta,
            np.where(known, squares, self.error),
        )  # fmt: skip

    def forecast(self, horizon: int) -> Floats:
        """Return the rates of the next periods, float64[s, horizon], at least 0."""
        steps = np.arange(1, horizon + 1)
        places = np.arange(horizon) % self.seasons.shape[1]
        rates = self.level[:, None] + steps * self.trend[:, None] + self.seasons[:, places]
        return np.maximum(rates, 0.0, out=rates)

    def deviation(self, horizon: int) -> Floats:
        """Return the standard deviations of the errors, float64[s, horizon].

        var_k = s² (1 + (k - 1)(a² + a b k + b² k (2k - 1) / 6) + n g (2 a + g + b m (n + 1))),
        where a = alpha, b = alpha gamma, g = delta (1 - alpha), m periods are a season and
        n = (k - 1) // m (Hyndman et al. 2008, table 6.1).
        """
        k = np.arange(1, horizon + 1)
        a, b, g = self.alpha, self.alpha * self.gamma, self.delta * (1 - self.alpha)
        m = self.seasons.shape[1]
        n = (k - 1) // m
        growth = 1 + (k - 1) * (a**2 + a * b * k + b**2 * k * (2 * k - 1) / 6)
        growth = growth + n * g * (2 * a + g + b * m * (n + 1))
        deviation: Floats = np.sqrt(self.error[:, None] * growth)
        return deviation
