"""How many query and aggregator nodes a query needs (section 3.2, equations 1a and 1b)."""

import math
from dataclasses import dataclass

from algorithms.errors import BadProblem
from algorithms.vocabulary import is_finite

# Shares of a node by which a sum may exceed a whole number.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class ParallelCosts:
    """Measured costs of a query.

    `operator_s`: seconds that a query node needs per record (c_op); `merge_s`: seconds that a merge
    node needs per partial result (c_merge); `node_rate`: partial results/s that a saturated query
    node emits (C_op); `headroom`: the share of a node that stays free (H).
    """

    operator_s: float
    merge_s: float
    node_rate: float
    headroom: float

    def __post_init__(self) -> None:
        for name in ("operator_s", "merge_s", "node_rate"):
            value = getattr(self, name)
            if not (is_finite(value) and value >= 0):
                raise BadProblem(name, f"must be a finite number of at least 0, not {value!r}")
        if not 0 <= self.headroom < 1:
            raise BadProblem("headroom", f"must be from 0 to below 1, not {self.headroom!r}")


def query_nodes(rate: float, cost: ParallelCosts) -> int:
    """Return the least number of query nodes for a rate: (rate / n) c_op <= 1 - H."""
    if not (is_finite(rate) and rate >= 0):
        raise BadProblem("rate", f"must be a finite number of at least 0, not {rate!r}")
    return _whole(rate * cost.operator_s / (1 - cost.headroom))


def aggregator_nodes(count: int, cost: ParallelCosts) -> int:
    """Return the least number of aggregator nodes: (n C_op / m) c_merge <= 1 - H.

    `count`: the number n of query nodes, all close to saturation, as section 3.2 assumes.
    """
    return _whole(count * cost.node_rate * cost.merge_s / (1 - cost.headroom))


def _whole(amount: float) -> int:
    return max(1, math.ceil(amount - _ROUNDING))
