"""Exact plans of a connected part of a network: closed forms, regions, and the linear program."""

from functools import cached_property
from typing import Final

import numpy as np

from algorithms.compiled import compiled
from algorithms.errors import TooLarge
from algorithms.lab.shedding.exact import arrangement, regions, thresholds
from algorithms.lab.shedding.exact.arrangement import Cuts, rounded
from algorithms.lab.shedding.exact.basis import BasisProgram, FlowSolution
from algorithms.lab.shedding.exact.equations import (
    DROPPED,
    FULL,
    PARTIAL,
    Equations,
    equations_of,
    floored_outputs,
    has_floors_of,
    loaded_resources,
    profits,
    sized_profits,
)
from algorithms.lab.shedding.exact.regions import Basis, Regions, region_of
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.network import Network
from algorithms.vocabulary import Flags, Floats

_TOLERANCE: Final = 1e-9


class Part:
    """Optimal flows of one part of a network at any input rates.

    `programs`: the linear programs that it solved. Not safe for several threads.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.model = FlowModel.of(network)
        self.eq = equations_of(self.model)
        self.programs = 0
        self._loaded, self._floored = loaded_resources(self.model), floored_outputs(self.model)
        is_single = len(self._loaded) == 1 and not len(self._floored)
        self._thresholds = thresholds.thresholds_of(self.eq) if is_single else None
        self._can_keep = regions.can_keep(self.eq) and has_floors_of(self.eq, self.model)
        self.regions = Regions(self.eq)

    @property
    def shape(self) -> tuple[object, ...]:
        """Return what two parts share if the bases of one are meaningful for the other."""
        network = self.network
        operators = tuple((item.name, item.sources, item.kind) for item in network.operators)
        rows = (self._loaded, self._floored)
        return (network.inputs, operators, network.locations, network.resources,
                tuple(network.outputs), *(tuple(places.tolist()) for places in rows))  # fmt: skip

    def updated(self, network: Network) -> "Part":
        """Return the part of a changed network, with the bases that are optimal there, too."""
        if network == self.network:
            return self
        part = Part(network)
        if part._thresholds is None and part._can_keep and part.shape == self.shape:
            for basis in self.regions.bases():
                region = region_of(part.eq, basis)
                if region is not None:
                    part.regions.add(region)
        return part

    @cached_property
    def _arrangement(self) -> arrangement.Arrangement | None:
        fits = not len(self._floored) and arrangement.can_arrange(self.eq)
        return arrangement.arranged(self.eq) if fits else None

    @cached_property
    def _program(self) -> BasisProgram:
        return BasisProgram(self.model)

    @property
    def is_complete(self) -> bool:
        """Return whether all cuts are known, so that no linear program is solved."""
        return self._thresholds is not None or self._arrangement is not None

    @property
    def cut_count(self) -> int:
        """Return the number of cuts that are known."""
        if self._thresholds is not None:
            return len(thresholds.prices_of_cuts(self.eq, self._thresholds))
        return len(self.cuts().constant)

    def cuts(self) -> Cuts:
        """Return the cuts that are known: all of them if `is_complete`. Raises `TooLarge`."""
        if self._thresholds is not None:
            return self._threshold_cuts(thresholds.prices_of_cuts(self.eq, self._thresholds))
        if self._arrangement is not None:
            return self._arrangement.cuts
        table, count = self.regions.table, self.regions.count
        _, places = np.unique(rounded(table.prices[:count]), axis=0, return_index=True)
        return Cuts(table.constant[places], table.slope[places], table.prices[places])

    def _threshold_cuts(self, prices: Floats) -> Cuts:
        if len(prices) * len(self.eq.values) > arrangement.MAX_NUMBERS:
            raise TooLarge(
                f"{len(prices):,} cuts of {self.eq.inputs:,} inputs need too much memory"
            )
        each = np.array([profits(self.eq, np.array([price])) for price in prices.tolist()])
        slope = each[:, : self.eq.inputs]
        slope[slope < _TOLERANCE * self.eq.values[: self.eq.inputs]] = 0.0
        slope, kept = np.unique(slope, axis=0, return_index=True)
        return Cuts(prices[kept] * self.eq.capacity[0], slope, prices[kept, None])

    def flows(self, rates: Floats) -> Floats:
        """Return the optimal flows float64[d] at rates float64[i]. Raises `NotProven`.

        That is raised if floors are not feasible, or HiGHS does not solve a program.
        """
        eq, result = self.eq, np.empty(len(self.eq.values))
        if self._thresholds is not None:
            thresholds.fill(eq, self._thresholds, rates, result)
            return result
        kept = self.regions
        if regions.plan_flows(eq, kept.table, kept.count, kept.clock, rates, result):
            return result
        return self._solved(rates, result)

    def all_flows(self, points: Floats) -> Floats:
        """Return the optimal flows float64[p, d] at points float64[p, i]. Raises `NotProven`."""
        result = np.empty((len(points), len(self.eq.values)))
        if self._thresholds is not None:
            _fill_all(self.eq, self._thresholds, points, result)
            return result
        kept, done = self.regions, 0
        while done < len(points):
            done = regions.plan_all(
                self.eq, kept.table, kept.count, kept.clock, points, result, done
            )
            if done < len(points):
                result[done] = self._solved(points[done], result[done])
                done += 1
        return result

    def values(self, points: Floats) -> Floats:
        """Return the optimal values float64[p] at points float64[p, i]. Raises `NotProven`."""
        if self._arrangement is not None:
            return self._arrangement.cuts.values(points)
        return np.asarray(self.all_flows(points) @ self.model.values)

    def _solved(self, rates: Floats, flows: Floats) -> Floats:
        """Return the optimal flows where no region fits, and keep their region."""
        if self._arrangement is not None:
            cuts = self._arrangement.cuts
            number = int(np.argmin(cuts.constant + cuts.slope @ rates))
            if self._is_optimal(self._arrangement.basis(number), rates, flows):
                return flows
        solution = self._program.solve_basis(rates)
        self.programs += 1
        if not self._can_keep:
            return solution.flows
        for basis in (self._basis_of(solution), self._basis_of_flows(solution, rates)):
            if self._is_optimal(basis, rates, flows):
                return flows
        return solution.flows

    def _is_optimal(self, basis: Basis, rates: Floats, flows: Floats) -> bool:
        """Keep the region of a basis; return whether the rates are in it, and write its flows."""
        region = region_of(self.eq, basis)
        if region is None:
            return False
        place = self.regions.add(region)
        return regions.flows_in_region(self.eq, self.regions.table, place, rates, flows)

    def _basis_of(self, solution: FlowSolution) -> Basis:
        """Return the basis in which HiGHS ended; signs of profits decide what is not partial."""
        binding = np.concatenate(
            [solution.is_binding[self._loaded], solution.is_floor_binding[self._floored]]
        )
        is_full = solution.is_full & solution.is_basic
        is_full[: self.eq.inputs] = solution.is_full[: self.eq.inputs]
        return self._basis(solution, solution.is_basic & ~solution.is_full, is_full, binding)

    def _basis_of_flows(self, solution: FlowSolution, rates: Floats) -> Basis:
        """Return the basis with the locations partial that keep some of what arrives, not all."""
        flows = solution.flows
        arriving = np.concatenate([rates, self.model.arrivals @ flows])
        slack = _TOLERANCE * arriving
        is_partial = (flows > slack) & (flows < arriving - slack)
        binding = self._prices(solution) > 0
        return self._basis(solution, is_partial, flows >= arriving - slack, binding)

    def _basis(
        self, solution: FlowSolution, is_partial: Flags, is_full: Flags, binding: Flags
    ) -> Basis:
        profit, size = sized_profits(self.eq, self._prices(solution))
        size *= _TOLERANCE
        states = np.where(is_full, FULL, DROPPED).astype(np.int32)
        states[profit > size] = FULL
        states[profit < -size] = DROPPED
        states[is_partial] = PARTIAL
        return Basis(states, np.flatnonzero(is_partial), np.flatnonzero(binding))

    def _prices(self, solution: FlowSolution) -> Floats:
        return np.concatenate([solution.prices[self._loaded], solution.floor_prices[self._floored]])


@compiled
def _fill_all(eq: Equations, order: thresholds.Thresholds, points: Floats, flows: Floats) -> None:
    for point in range(len(points)):
        thresholds.fill(eq, order, points[point], flows[point])
