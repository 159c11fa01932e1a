"""Additive seasonal Holt-Winters for many streams of one season length."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from algorithms.admission.forecasting.holt import ERROR_WEIGHT
from algorithms.vocabulary import Floats


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
