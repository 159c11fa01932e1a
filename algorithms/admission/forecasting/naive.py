"""The naive forecast: the next rates equal the last one."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from algorithms.admission.forecasting.holt import ERROR_WEIGHT
from algorithms.vocabulary import Floats


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
