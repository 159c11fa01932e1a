"""Holt's linear trend for many streams at once (section 2.3)."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from algorithms.vocabulary import Floats


@dataclass(frozen=True, eq=False)
class HoltState:
    """Levels and trends of s streams after the last observation.

    `level`, `trend` float64[s]: L_t and T_t in records/s and records/s per period; `alpha`,
    `gamma` float64[s]: the smoothing factors; `error` float64[s]: the exponentially weighted mean
    square of the one-step errors.
    """

    level: Floats
    trend: Floats
    alpha: Floats
    gamma: Floats
    error: Floats

    @classmethod
    def start(cls, first: Floats, alpha: Floats | float, gamma: Floats | float) -> Self:
        """Return the state after the first observation: L = X_1, T = 0."""
        zero = np.zeros(len(first))
        return cls(np.asarray(first, np.float64), zero, zero + alpha, zero + gamma, zero.copy())

    def observed(self, rates: Floats) -> Self:
        """Return the state after one more observation per stream; NaN: none in this period.

        L_t = alpha X_t + (1 - alpha)(L_{t-1} + T_{t-1});
        T_t = gamma (L_t - L_{t-1}) + (1 - gamma) T_{t-1}.
        """
        forecast = self.level + self.trend
        known = ~np.isnan(rates)
        error = np.where(known, rates - forecast, 0.0)
        level = forecast + self.alpha * error
        trend = self.trend + self.gamma * (level - self.level - self.trend)
        squares = self.error + ERROR_WEIGHT * (error**2 - self.error)
        return type(self)(
            np.where(known, level, self.level),
            np.where(known, trend, self.trend),
            self.alpha,
            self.gamma,
            np.where(known, squares, self.error),
        )

    def forecast(self, horizon: int) -> Floats:
        """Return the rates of the next periods, float64[s, horizon]: L_t + k T_t, at least 0."""
        steps = np.arange(1, horizon + 1)
        rates = self.level[:, None] + steps * self.trend[:, None]
        return np.maximum(rates, 0.0, out=rates)

    def deviation(self, horizon: int) -> Floats:
        """Return the standard deviations of the errors of the forecasts, float64[s, horizon].

        Of the state space model of Holt's method (Hyndman et al., Forecasting with Exponential
        Smoothing, 2008, table 6.1): var_k = s² (1 + (k - 1)(a² + a b k + b² k (2k - 1) / 6)), where
        a = alpha, b = alpha gamma.
        """
        k = np.arange(1, horizon + 1)
        a = self.alpha[:, None]
        b = (self.alpha * self.gamma)[:, None]
        growth = 1 + (k - 1) * (a**2 + a * b * k + b**2 * k * (2 * k - 1) / 6)
        return np.sqrt(self.error[:, None] * growth)


# The weight of the newest square: errors of about the last twenty periods count.
ERROR_WEIGHT = 0.1


def smoothed(history: Floats, alpha: Floats | float, gamma: Floats | float) -> HoltState:
    """Return the state after a history float64[s, t], oldest first; NaN: no observation.

    A stream's first observation is its first level.
    """
    known = ~np.isnan(history)
    first = np.argmax(known, axis=1)
    state = HoltState.start(history[np.arange(len(history)), first], alpha, gamma)
    for period in range(history.shape[1]):
        rates = np.where(period > first, history[:, period], np.nan)
        state = state.observed(rates)
    return state
