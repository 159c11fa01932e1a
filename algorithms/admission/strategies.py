"""The strategies of sections 2.5 and 6.1.2 on the skeleton of Algorithm 1.

Each underlined method of the skeleton is a method that a strategy replaces: `is_overloaded`,
`victim_order`, `accepts` and `placement_order`.
"""

from dataclasses import dataclass

import numpy as np

from algorithms.admission.consolidation import consolidated
from algorithms.admission.packing import ROUNDING, best_fit
from algorithms.admission.problem import NEW, AdmissionPlan, AdmissionProblem
from algorithms.vocabulary import Flags, Floats, Parameters, Progress, parameter, silent


FILLD=True
CYCLE=True
REOPEN=False
DET=9; PICK=9
RATIO=0.3
SQ=1
DRFMC=True
@dataclass(frozen=True)
class Strategy(Parameters):
    """Skeleton of Algorithm 1."""

    latency_s: float = parameter(
        5.0, unit="s", minimum=0.0,
        help="A split node with a longer latency is overloaded.",
    )  # fmt: skip
    foresee: bool = parameter(
        default=False,
        help="A split node whose predicted load exceeds its capacity is overloaded, too.",
    )
    fill: float = parameter(
        1.0, minimum=0.1, maximum=1.0,
        help="The share of a split node's capacity up to which it is filled.",
    )  # fmt: skip
    consolidate: bool = parameter(
        default=False, help="Close nearly empty split nodes if others have room for their streams."
    )

    room: float = parameter(
        0.05, minimum=0.0, maximum=0.9,
        help="The share of all capacity that stays free when a split node is closed.",
    )  # fmt: skip

    def sizes(self, problem: AdmissionProblem) -> Floats:
        """Return the records/s that a stream counts for in each considered period, [s, k]."""
        return problem.predictions.average[:, None]

    def limited_sizes(self, problem: AdmissionProblem) -> Floats:
        """Return the sizes, at most what one node takes: a forecast may exceed that."""
        return np.minimum(self.sizes(problem), self.fill * problem.capacity)

    def cycle(self, problem: AdmissionProblem) -> Floats | None:
        return None

    def is_overloaded(self, problem: AdmissionProblem, loads: Floats) -> Flags:
        """Return whether each node is overloaded, bool[m]: by latency, or by load without it."""
        limits = problem.capacities * (1 + ROUNDING)
        if problem.latency is None:
            overloaded = problem.loads(problem.predictions.average) > limits
        else:
            overloaded = problem.latency > self.latency_s
        if self.foresee:
            overloaded |= loads.max(axis=1) > limits * (self.fill if FILLD else 1)
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
        if self.consolidate:
            cc = problem.predictions.cycle if isinstance(self, DrfM) and DRFMC else self.cycle(problem)
            plan = consolidated(problem, plan, sizes, self.fill, self.room, cc, isinstance(self,Profile))
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

    def closed(self, problem, sizes, overloaded):
        return overloaded | ~self.accepts(problem, problem.loads(sizes))

    def place(
        self, problem: AdmissionProblem, sizes: Floats, moved: Flags, overloaded: Flags
    ) -> AdmissionPlan:
        """Place the moved streams by best-fit decreasing on accepting and new nodes."""
        kept = np.where(moved, NEW, problem.owner)
        loads = np.zeros((problem.nodes, sizes.shape[1]))
        np.add.at(loads, kept[kept != NEW], sizes[kept != NEW])
        free = self.fill * problem.capacities[:, None] - loads
        closed = self.closed(problem, sizes, overloaded)
        free[closed] = -1.0
        cycle = self.cycle(problem)
        cycle_free = None
        if cycle is not None:
            cycle_free = np.repeat(self.fill * problem.capacities[:, None], cycle.shape[1], axis=1)
            np.subtract.at(cycle_free, kept[kept != NEW], cycle[kept != NEW])
        items = np.flatnonzero(moved)
        order = items[np.argsort(-self.placement_order(problem)[items], kind="stable")]
        nodes, opened = best_fit(order, sizes, free, self.fill * problem.capacity, cycle, cycle_free)
        assignment = kept.copy()
        assignment[order] = nodes
        return AdmissionPlan.of(problem, assignment, problem.nodes + opened)


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
        """Return the expectations of the periods t + 1 and t + k."""
        return problem.predictions.expected[:, ::max(1,problem.predictions.expected.shape[1]-1)]

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
    """Packs by the rates of all periods of the horizon, so that opposite streams share a node."""

    def sizes(self, problem: AdmissionProblem) -> Floats:
        """Return the expectation of each period of the horizon."""
        return problem.predictions.expected

    def is_overloaded(self, problem: AdmissionProblem, loads: Floats) -> Flags:
        return super().is_overloaded(problem, loads[:, :DET])

    def cycle(self, problem: AdmissionProblem) -> Floats | None:
        c= problem.predictions.cycle if CYCLE else None
        if c is None: return c
        return np.ascontiguousarray(c[:, c.sum(axis=0)<=self.fill*problem.capacities.sum()])

    def closed(self, problem, sizes, overloaded):
        if not REOPEN:
            return super().closed(problem,sizes,overloaded)
        if problem.latency is None: return np.zeros(problem.nodes,bool)
        return problem.latency > self.latency_s

    def pick_streams(
        self, problem: AdmissionProblem, sizes: Floats, loads: Floats, overloaded: Flags
    ) -> Flags:
        """Return the streams that leave an overloaded node, bool[s].

        In the period with the largest excess, a stream whose absence suffices leaves: the one with
        the lowest present rate, as its client buffers the fewest records. Without one, the stream
        with the highest rate of that period leaves, and so on.
        """
        moved = np.zeros(len(problem.owner), np.bool_)
        present = problem.predictions.expected[:, 0]
        cyc=self.cycle(problem)
        if cyc is not None:
            cl=np.zeros((problem.nodes,cyc.shape[1])); np.add.at(cl,problem.owner[problem.owner!=NEW],cyc[problem.owner!=NEW]); cl-=self.fill*problem.capacities[:,None]
        for node in np.flatnonzero(overloaded).tolist():
            streams = np.flatnonzero(problem.owner == node)
            limit = self.fill * problem.capacities[node]
            excess = loads[node] - limit
            excess=excess[:PICK]
            while len(streams) and excess.max() > limit * ROUNDING:
                rates = sizes[streams, excess.argmax()]
                if RATIO:
                    cost = present[streams]+RATIO*present.mean()
                    if SQ:
                        value = np.minimum(rates, excess.max())*excess.max()
                        if cyc is not None:
                            value = value + SQ*((np.maximum(cl[node],0)**2).sum() - (np.maximum(cl[node]-cyc[streams],0)**2).sum(axis=1))
                        value = value/cost
                    else:
                        value = np.minimum(rates, excess.max())/cost
                    place = value.argmax()
                    moved[streams[place]]=True
                    if cyc is not None: cl[node]-=cyc[streams[place]]
                    excess = excess - sizes[streams[place]][:len(excess)]
                    streams = np.delete(streams, place)
                    continue
                enough = np.flatnonzero(rates >= excess.max())
                place = enough[present[streams[enough]].argmin()] if len(enough) else rates.argmax()
                moved[streams[place]] = True
                excess = excess - sizes[streams[place]][:len(excess)]
                streams = np.delete(streams, place)
        return moved
