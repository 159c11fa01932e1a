"""The rates for which a table of plans is made, and what is feasible among them."""

from functools import cached_property
from typing import Any, Final

import numpy as np

from algorithms.checks import amounts
from algorithms.errors import BadProblem, TooLarge
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.network import MAX_NUMBER
from algorithms.vocabulary import Floats, Ints

# Numbers in one array, 160 MB.
MAX_NUMBERS: Final = 20_000_000
_ROUNDING: Final = 1e-12


class RateSpace:
    """The rates of a network's inputs from 0 to bounds.

    Inputs of which no record reaches a result with a weight are dropped in an overload. They are no
    dimensions of the space, nor are inputs with a bound of 0. In the remaining dimensions the
    optimum of an infeasible point is above 0, so relative errors can become as small as required.
    """

    def __init__(self, model: FlowModel, bounds: Any) -> None:
        """Prepare a space; `bounds`: records per unit of time of each input, [i].

        Raises `BadProblem` on bounds that are none, and for a network with floors: extra drops
        reduce the results of every output. Raises `TooLarge`.
        """
        self.model = model
        self.bounds: Floats = amounts("bounds", bounds)
        if len(self.bounds) != model.inputs:
            why = f"must be {model.inputs:,} rates, one per input, not {len(self.bounds):,}"
            raise BadProblem("bounds", why)
        if (self.bounds > MAX_NUMBER).any():
            raise BadProblem("bounds", f"must be at most {MAX_NUMBER:g}")
        if model.floors.any():
            why = "are not supported by tables of plans, which reuse plans with extra drops; use lp"
            raise BadProblem("floors", why)
        if model.inputs * len(model.values) > MAX_NUMBERS:
            raise TooLarge(
                f"{model.inputs:,} inputs with {len(model.values):,} drop locations are too many "
                f"for a table of plans: at most {MAX_NUMBERS:,} pairs"
            )

    @cached_property
    def dimensions(self) -> Ints:
        """Return the places of the inputs that are dimensions, int64[m]."""
        return np.flatnonzero(self._useful & (self.bounds > 0))

    @property
    def extent(self) -> Floats:
        """Return the bound of each dimension, float64[m]."""
        return self.bounds[self.dimensions]

    def is_feasible(self, rates: Floats) -> bool:
        """Return whether these rates of all inputs, float64[i], need no drops."""
        return bool((self._loads @ rates <= self._limits).all())

    def unshed_value(self, rates: Floats) -> float:
        """Return the weighted results of these rates, float64[i], without drops."""
        return float(self._values @ rates)

    def full(self, rates: Floats) -> Floats:
        """Return the rates of all inputs, float64[i], of those of the dimensions, float64[m]."""
        result = np.zeros(self.model.inputs)
        result[self.dimensions] = rates
        return result

    def reduced(self, rates: Floats) -> Floats:
        """Return rates float64[m] in the dimensions, at most their bounds, of all inputs' rates."""
        return np.minimum(rates[self.dimensions], self.extent)

    def full_intervals(self, low: Floats, stop: Floats) -> tuple[Floats, Floats]:
        """Return the boxes of all inputs, float64[b, i], of those in the dimensions.

        A box contains every rate of inputs without results, and the rate 0 of a bound of 0.
        """
        first = np.zeros((len(low), self.model.inputs))
        last = np.full_like(first, np.nextafter(0.0, 1.0))
        last[:, ~self._useful] = np.inf
        first[:, self.dimensions], last[:, self.dimensions] = low, stop
        return first, last

    @cached_property
    def _unshed(self) -> Floats:
        """Return the flows per unit of each input's rate, float64[d, i]."""
        return self.model.unshed(np.eye(self.model.inputs))

    @cached_property
    def _values(self) -> Floats:
        """Return the weighted results per record of each input, float64[i]."""
        return np.asarray(self.model.values @ self._unshed)

    @cached_property
    def _useful(self) -> Any:
        return self._values > 0

    @cached_property
    def _loads(self) -> Floats:
        return np.asarray(self.model.loads @ self._unshed)

    @cached_property
    def _limits(self) -> Floats:
        return self.model.capacities * (1 + _ROUNDING)
