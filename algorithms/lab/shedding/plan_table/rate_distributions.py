"""Distributions of the rates of inputs, for expected errors (paper 003, sections 5.2 and 8.1)."""

from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from algorithms.checks import amounts
from algorithms.errors import BadProblem
from algorithms.vocabulary import Floats, Ints

# Mean rate in records/s per unit of the paper's lambda, which has no unit there. Figure 10 (b) has
# a mean error of 1.44 % at lambda = 5 for tables of 5 % error, on average over five crossed chains.
# With costs of (56, 40), (64, 32), ..., (88, 8) ms, of which the text names only the second, and
# bounds of 60 records/s, that average is 1.42 % at means of 10 records/s.
RATE_PER_LAMBDA: Final = 2.0
# Rates of a measured series: one per input and time.
MAX_MEASURED: Final = 10_000_000


class RateDistribution(Protocol):
    """A joint distribution of the rates of inputs."""

    @property
    def inputs(self) -> int:
        """Return the number of inputs."""
        ...

    def probabilities(self, low: Floats, stop: Floats) -> Floats:
        """Return the probability of each box, float64[b].

        `low`, `stop` float64[b, i]: a box contains the rates from `low` on and before `stop`.
        """
        ...

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """Return independent rates of the inputs, float64[count, i]."""
        ...

    def marginal(self, places: Ints) -> "RateDistribution":
        """Return the joint distribution of the inputs at these places."""
        ...


@dataclass(frozen=True, eq=False)
class ExponentialRates:
    """Independent exponential rates; `means` float64[i], in records per unit of time.

    Section 8.1 calls the parameter lambda, and a greater lambda overloads a system more (section
    8.2.2): so lambda is a mean rate, in a unit that the paper does not name (`RATE_PER_LAMBDA`). A
    mean of 0 is the rate 0. Raises `BadProblem`.
    """

    means: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", amounts("means", self.means))

    @property
    def inputs(self) -> int:
        """Return the number of inputs."""
        return len(self.means)

    def probabilities(self, low: Floats, stop: Floats) -> Floats:
        """Return the probability of each box, float64[b]; see `RateDistribution`."""
        moving = self.means > 0
        means, first, last = self.means[moving], low[:, moving], stop[:, moving]
        parts = np.exp(-first / means) * -np.expm1(-np.maximum(last - first, 0.0) / means)
        still = (low[:, ~moving] <= 0) & (stop[:, ~moving] > 0)
        return np.asarray(parts.prod(axis=1) * still.all(axis=1))

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """Return independent rates of the inputs, float64[count, i]."""
        return rng.exponential(1.0, (count, len(self.means))) * self.means

    def marginal(self, places: Ints) -> "ExponentialRates":
        """Return the joint distribution of the inputs at these places."""
        return ExponentialRates(self.means[places])


@dataclass(frozen=True, eq=False)
class MeasuredRates:
    """The joint distribution of a measured series: each of its rows is equally probable.

    `rates` float64[n, i]: the distinct rows; `parts` float64[n]: the part of the series that each
    is, so they sum to 1.
    """

    rates: Floats
    parts: Floats

    @classmethod
    def of(cls, series: Any) -> "MeasuredRates":
        """Return the distribution of rows of rates, [n, i]. Raises `BadProblem`."""
        try:
            rows = np.asarray(series, np.float64)
        except (TypeError, ValueError) as error:
            raise BadProblem("series", "must be rows of rates, one rate per input") from error
        if rows.ndim != 2 or not rows.size:  # noqa: PLR2004 - rows and inputs
            raise BadProblem("series", "must be rows of rates, one rate per input")
        if rows.size > MAX_MEASURED:
            raise BadProblem("series", f"must be at most {MAX_MEASURED:,} rates, not {rows.size:,}")
        amounts("series", rows.ravel())
        distinct, counts = np.unique(rows, axis=0, return_counts=True)
        return cls(distinct, counts / len(rows))

    @property
    def inputs(self) -> int:
        """Return the number of inputs."""
        return int(self.rates.shape[1])

    def probabilities(self, low: Floats, stop: Floats) -> Floats:
        """Return the probability of each box, float64[b]; see `RateDistribution`."""
        result = np.empty(len(low))
        for box, (first, last) in enumerate(zip(low, stop, strict=True)):
            inside = ((self.rates >= first) & (self.rates < last)).all(axis=1)
            result[box] = self.parts[inside].sum()
        return result

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """Return independent rows of the series, float64[count, i]."""
        return self.rates[rng.choice(len(self.rates), count, p=self.parts)]

    def marginal(self, places: Ints) -> "MeasuredRates":
        """Return the joint distribution of the inputs at these places."""
        distinct, group = np.unique(self.rates[:, places], axis=0, return_inverse=True)
        parts = np.bincount(group.ravel(), self.parts, len(distinct))
        return MeasuredRates(distinct, parts.astype(np.float64))
