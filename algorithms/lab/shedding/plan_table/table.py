"""Tables of plans: the boxes of a rate space with the plan of each (paper 003, section 5.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from algorithms.lab.shedding.plan_table.rate_distributions import RateDistribution
from algorithms.lab.shedding.plan_table.rate_space import RateSpace
from algorithms.lab.shedding.plan_table.region_quadtree import RegionQuadtree
from algorithms.vocabulary import Floats


@dataclass(frozen=True, eq=False)
class PlanTable:
    """The plan of each box that has infeasible points: the optimum at its bottom corner.

    `flows` float64[p, d] has a row per plan, and `rows` the row of a box. `errors` float64[p]: by
    which part of the optimum a plan is at most below it, at any point of its box. `lp_values`:
    points of which the optimum was computed. `distribution`: of the rates, None if all boxes count
    alike.
    """

    space: RateSpace
    tree: RegionQuadtree
    flows: Floats
    rows: Mapping[int, int]
    errors: Floats
    lp_values: int
    distribution: RateDistribution | None = None

    @property
    def error(self) -> float:
        """Return the largest error of a box, as a part of the optimum."""
        return float(self.errors.max(initial=0.0))

    @cached_property
    def expected_error(self) -> float | None:
        """Return the mean error of the boxes under the distribution, None without one."""
        return None if self.distribution is None else self.mean_error(self.distribution)

    @cached_property
    def coverage(self) -> float:
        """Return the probability of the rates within the bounds, 1 without a distribution."""
        return 1.0 if self.distribution is None else self._probability(self.distribution)

    def mean_error(self, distribution: RateDistribution) -> float:
        """Return the mean error of the boxes under a distribution of the rates within the bounds.

        Section 5.2: the sum of their errors times their probabilities. Without probability within
        the bounds, 0 is returned.
        """
        within = self._probability(distribution)
        low, stop = self.space.full_intervals(*self.tree.intervals(list(self.rows)))
        total = float(self.errors @ distribution.probabilities(low, stop))
        return total / within if within > 0 else 0.0

    def _probability(self, distribution: RateDistribution) -> float:
        whole = self.space.full_intervals(*self.tree.intervals([0]))
        return float(distribution.probabilities(*whole)[0])

    @property
    def boxes(self) -> int:
        """Return the number of boxes that are not divided."""
        return sum(1 for _ in self.tree.leaves())

    @property
    def plans(self) -> int:
        """Return the number of plans."""
        return len(self.flows)

    def flows_at(self, rates: Floats) -> Floats:
        """Return what each drop location keeps at rates float64[i], as flows float64[d].

        Feasible rates are kept. Other rates are scaled to the bottom corner of their box by extra
        drops, so the value is at least 1 - `error` of the optimum. Rates above a bound are scaled
        to the bound first, which the error does not include: the optimum there may be larger.
        """
        space = self.space
        if space.is_feasible(rates):
            return space.model.unshed(rates)
        reduced = space.reduced(rates)
        within = space.full(reduced)
        # A box without a plan is feasible.
        row = self.rows.get(self.tree.leaf_at(reduced.tolist()))
        if row is None or space.is_feasible(within):
            return space.model.unshed(within)
        return np.asarray(self.flows[row])
