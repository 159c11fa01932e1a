"""The strategies of sections 2.5 and 6.1.2 on the skeleton of Algorithm 1.

Each underlined method of the skeleton is a method that a strategy replaces: `is_overloaded`,
`victim_order`, `accepts` and `placement_order`.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from algorithms.admission.consolidation import consolidated
from algorithms.admission.packing import ROUNDING, best_fit, cheapest_victims
from algorithms.admission.problem import NEW, AdmissionPlan, AdmissionProblem
from algorithms.vocabulary import Flags, Floats, Ints, Parameters, Progress, parameter, silent


@dataclass(frozen=True)
class Strategy(Parameters):
    """Skeleton of Algorithm 1."""

    latency_s: float = parameter(
        5.0, title="Longest allowed latency", unit="s", minimum=0.0, maximum=3_600.0,
        help="A split node with a longer latency is overloaded.",
    )  # fmt: skip
    foresee: bool = parameter(
        default=False,
        title="Use the forecast",
        help="A split node whose predicted load exceeds its filled share is overloaded, too.",
    )
    fill: float = parameter(
        1.0, title="Filled share", minimum=0.1, maximum=1.0,
        help="The share of a split node's capacity up to which it is filled.",
    )  # fmt: skip
    consolidate: bool = parameter(
        default=False,
        title="Close split nodes",
        help="Close nearly empty split nodes if others have room for their streams.",
    )

    room: float = parameter(
        0.05, title="Free capacity", minimum=0.0, maximum=0.9,
        help="The share of all capacity that stays free when a split node is closed.",
    )  # fmt: skip

    def sizes(self, problem: AdmissionProblem) -> Floats:
        """Return the records/s that a stream counts for in each considered period, [s, k]."""
        return problem.predictions.average[:, None]

    def cycle(self, problem: AdmissionProblem) -> Floats | None:
        """Return the rates of the streams in the parts of a cycle, [s, q], None: not considered."""
        return None

    def may_close(self, problem: AdmissionProblem) -> bool:
        """Return whether consolidation may close split nodes now."""
        return True

    def limited_sizes(self, problem: AdmissionProblem) -> Floats:
        """Return the sizes, at most what one node takes: a forecast may exceed that."""
        return np.minimum(self.sizes(problem), self.fill * problem.capacity)

    def is_overloaded(self, problem: AdmissionProblem, loads: Floats) -> Flags:
        """Return whether each node is overloaded, bool[m]: by latency, or by load without it."""
        limits = problem.capacities * (1 + ROUNDING)
        if problem.latency is None:
            overloaded = problem.loads(problem.predictions.average) > limits
        else:
            overloaded = problem.latency > self.latency_s
        if self.foresee:
            overloaded |= loads.max(axis=1) > self.fill * limits
        return overloaded

    def victim_order(self, problem: AdmissionProblem) -> Floats:
        """Return the priority of each stream to leave an overloaded node, the highest first."""
        priority: Floats = self.sizes(problem).max(axis=1)
        return priority

    def accepts(self, problem: AdmissionProblem, loads: Floats) -> Flags:
        """Return whether each node accepts streams, bool[m]."""
        accepting: Flags = loads.max(axis=1) < self.fill * problem.capacities
        return accepting

    def placement_order(self, problem: AdmissionProblem) -> Floats:
        """Return the priority of each stream to be placed, the highest first."""
        priority: Floats = self.sizes(problem).max(axis=1)
        return priority

    def solve(self, problem: AdmissionProblem, progress: Progress = silent) -> AdmissionPlan:
        """Return the plan of one optimisation period."""
        sizes = self.limited_sizes(problem)
        loads = problem.loads(sizes)
        overloaded = self.is_overloaded(problem, loads)
        moved = self.pick_streams(problem, sizes, loads, overloaded) | (problem.owner == NEW)
        plan = self.place(problem, sizes, moved, overloaded)
        if self.consolidate and self.may_close(problem):
            plan = consolidated(problem, plan, sizes, self.fill, self.room, self.cycle(problem))
        progress(1.0)
        return plan

    def pick_streams(
        self, problem: AdmissionProblem, sizes: Floats, loads: Floats, overloaded: Flags
    ) -> Flags:
        """Return the streams that leave an overloaded node by their priority, bool[s].

        The rest is within the capacity in every considered period.
        """
        placed = np.flatnonzero(problem.owner != NEW)
        placed = placed[overloaded[problem.owner[placed]]]
        priority = self.victim_order(problem)[placed]
        order = placed[np.lexsort((-priority, problem.owner[placed]))]
        owners = problem.owner[order]
        before = np.cumsum(sizes[order], axis=0) - sizes[order]
        first = np.searchsorted(owners, owners)
        left = loads[owners] - (before - before[first])
        limits = self.fill * problem.capacities[owners] * (1 + ROUNDING)
        moved = np.zeros(len(problem.owner), np.bool_)
        moved[order[(left > limits[:, None]).any(axis=1)]] = True
        return moved

    def place(
        self, problem: AdmissionProblem, sizes: Floats, moved: Flags, overloaded: Flags
    ) -> AdmissionPlan:
        """Place the moved streams by best-fit decreasing on accepting and new nodes."""
        kept = np.where(moved, NEW, problem.owner)
        free = self.fill * problem.capacities[:, None] - _loads(problem, kept, sizes)
        closed = overloaded | ~self.accepts(problem, problem.loads(sizes))
        free[closed] = -1.0
        items = np.flatnonzero(moved)
        order = items[np.argsort(-self.placement_order(problem)[items], kind="stable")]
        cycle, cycle_free = self.cycle(problem), None
        if cycle is not None:
            cycle_free = self.fill * problem.capacities[:, None] - _loads(problem, kept, cycle)
        capacity = self.fill * problem.capacity
        nodes, opened = best_fit(order, sizes, free, capacity, cycle, cycle_free)
        assignment = kept.copy()
        assignment[order] = nodes
        return AdmissionPlan.of(problem, assignment, problem.nodes + opened)


def _loads(problem: AdmissionProblem, owner: Ints, rates: Floats) -> Floats:
    """Return the loads float64[m, k] of the open nodes by another owner of each stream."""
    return replace(problem, owner=owner).loads(rates)


@dataclass(frozen=True)
class Par(Strategy):
    """Plain average rate: packs all streams again in every period (section 6.1.2)."""

    def solve(self, problem: AdmissionProblem, progress: Progress = silent) -> AdmissionPlan:
        """Return the plan: every stream is moveable, every node is empty."""
        sizes = self.limited_sizes(problem)
        order = np.argsort(-self.placement_order(problem), kind="stable")
        free = np.repeat(self.fill * problem.capacities[:, None], sizes.shape[1], axis=1)
        nodes, opened = best_fit(order, sizes, free, self.fill * problem.capacity)
        assignment = np.empty(len(order), np.int64)
        assignment[order] = nodes
        progress(1.0)
        return AdmissionPlan.of(problem, assignment, problem.nodes + opened)


@dataclass(frozen=True)
class Ari(Strategy):
    """Average rate increasing: the slowest streams leave first (section 6.1.2)."""

    def victim_order(self, problem: AdmissionProblem) -> Floats:
        """Return the negative average rates."""
        return -problem.predictions.average


@dataclass(frozen=True)
class Ard(Strategy):
    """Average rate decreasing: the fastest streams leave first (section 6.1.2)."""

    def victim_order(self, problem: AdmissionProblem) -> Floats:
        """Return the average rates."""
        return problem.predictions.average


@dataclass(frozen=True)
class Drf(Strategy):
    """Delta rate forecast: the streams with the highest expected increase leave first."""

    def sizes(self, problem: AdmissionProblem) -> Floats:
        """Return the forecast of period t + k."""
        return problem.predictions.forecast[:, -1:]

    def victim_order(self, problem: AdmissionProblem) -> Floats:
        """Return the forecast of period t + k minus that of t + 1."""
        forecast = problem.predictions.forecast
        return forecast[:, -1] - forecast[:, 0]

    def placement_order(self, problem: AdmissionProblem) -> Floats:
        """Return the forecasts of the next period."""
        return problem.predictions.forecast[:, 0]


@dataclass(frozen=True)
class DrfM(Strategy):
    """Delta rate forecast with meta-data (section 2.5)."""

    def sizes(self, problem: AdmissionProblem) -> Floats:
        """Return the expectations of the periods t + 1 and t + k.

        With period t + k alone, a stream whose rate falls until then overloads a node before it.
        """
        return problem.predictions.expected[:, [0, -1]]

    def victim_order(self, problem: AdmissionProblem) -> Floats:
        """Return the expectation of period t + k minus the forecast of t + 1."""
        return problem.predictions.expected[:, -1] - problem.predictions.forecast[:, 0]

    def placement_order(self, problem: AdmissionProblem) -> Floats:
        """Return the expectation of period t + k, without meta-data the forecast of t + 1."""
        predictions = problem.predictions
        return np.where(
            predictions.has_metadata, predictions.expected[:, -1], predictions.forecast[:, 0]
        )


@dataclass(frozen=True)
class Profile(Strategy):
    """Packs by the rates of all periods of the horizon, so that opposite streams share a node.

    Among the nodes that a stream fits, it prefers those with the least excess in the declared
    cycle, so that repeating streams need no redirection later.
    """

    def sizes(self, problem: AdmissionProblem) -> Floats:
        """Return the expectation of each period of the horizon."""
        return problem.predictions.expected

    def cycle(self, problem: AdmissionProblem) -> Floats | None:
        """Return the rates of the cycle, without parts that exceed the capacity of the open nodes.

        More nodes are opened for those parts anyway.
        """
        cycle = problem.predictions.cycle
        if cycle is None:
            return np.zeros((len(problem.owner), 0))
        fits = cycle.sum(axis=0) <= self.fill * problem.capacities.sum()
        return np.ascontiguousarray(cycle[:, fits])

    def is_overloaded(self, problem: AdmissionProblem, loads: Floats) -> Flags:
        """Return whether each node is overloaded, foreseen in the next two periods only.

        A node that is opened earlier is open in more periods.
        """
        return super().is_overloaded(problem, loads[:, :SOON])

    def may_close(self, problem: AdmissionProblem) -> bool:
        """Return whether the total of the expected rates does not fall steeply.

        A node that is closed later has less load, so the clients of its streams buffer fewer
        records.
        """
        totals = problem.predictions.expected.sum(axis=0)
        return bool(totals[0] <= STEEP * totals[-1])

    def pick_streams(
        self, problem: AdmissionProblem, sizes: Floats, loads: Floats, overloaded: Flags
    ) -> Flags:
        """Return the streams that leave an overloaded node, bool[s].

        A redirection costs the records that the client buffers, at the rate of the next period, and
        a constant, so that few streams leave.
        """
        rates = sizes[:, 0]
        costs = np.maximum(rates + REDIRECTION_COST * rates.mean(), ROUNDING)
        cycle = self.cycle(problem)
        cycle = np.zeros((len(rates), 0)) if cycle is None else cycle
        placed = np.flatnonzero(problem.owner != NEW)
        placed = placed[overloaded[problem.owner[placed]]]
        order = placed[np.argsort(problem.owner[placed], kind="stable")]
        limits = self.fill * problem.capacities[:, None]
        return cheapest_victims(
            order,
            problem.owner,
            np.ascontiguousarray(sizes),
            cycle,
            loads - limits,
            problem.loads(cycle) - limits,
            costs,
            ROUNDING * problem.capacity,
        )


# Periods in which `Profile` foresees an overload.
SOON: Final = 2
# Ratio of the total rate of the next period to that of the last one that is a steep fall.
STEEP: Final = 1.5
# The constant cost of a redirection, relative to the average rate of the streams.
REDIRECTION_COST: Final = 2.0
