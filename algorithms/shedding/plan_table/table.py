"""Tables of plans: the boxes of a rate space with the plan of each (paper 003, section 5.1)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from algorithms.shedding.plan_table.rate_space import RateSpace
from algorithms.shedding.plan_table.region_quadtree import RegionQuadtree
from algorithms.vocabulary import Floats


@dataclass(frozen=True, eq=False)
class PlanTable:
    """The plan of each box that has infeasible points: the optimum at its bottom corner.

    `flows` float64[p, d] has a row per plan, and `rows` the row of a box. `lp_values`: points of
    which the optimum was computed. `error`: the largest percent error of a box, as a part;
    `expected_error`: its mean under a distribution of the rates within the bounds, None without
    one; `coverage`: the probability of the rates within the bounds.
    """

    space: RateSpace
    tree: RegionQuadtree
    flows: Floats
    rows: Mapping[int, int]
    lp_values: int
    error: float
    expected_error: float | None = None
    coverage: float = 1.0

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
        if space.is_feasible(within):
            return space.model.unshed(within)
        return np.asarray(self.flows[self.rows[self.tree.leaf_at(reduced.tolist())]])
