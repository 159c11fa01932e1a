"""How many split, query and aggregator nodes the next period needs (sections 3.1 and 3.2).

A result appears at most one interval of micro-batches plus the duration of a batch after its last
record, and a batch of a node with utilisation u lasts u intervals. So a latency bound L limits the
utilisation to L / interval - 1, as the head-room H limits it to 1 - H.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.admission.metadata import MAX_RATE
from algorithms.admission.packing import best_fit
from algorithms.errors import BadProblem, PlanningError
from algorithms.vocabulary import Floats, Parameters, Progress, is_finite, parameter, silent

# Of a record, and of a latency bound.
MAX_SECONDS: Final = 3_600.0
MAX_INTERVAL_S: Final = 1e7
# Shares of a node by which a sum may exceed a whole number.
_ROUNDING = 1e-9


class LatencyTooShort(PlanningError):
    """The latency bound is at or below one interval of micro-batches."""

    def __init__(self, latency_s: float, interval_s: float) -> None:
        super().__init__(
            f"the latency bound of {latency_s:g} s must exceed the interval of micro-batches, "
            f"{interval_s:g} s, as a record may wait for one interval: raise the bound or shorten "
            "the interval"
        )
        self.latency_s, self.interval_s = latency_s, interval_s


@dataclass(frozen=True)
class QueryLoad:
    """A query of the next period.

    `rate`: expected records/s of its streams in the worst period; `operator_s`: seconds of a query
    node per record; `merge_s`: seconds of an aggregator node per partial result; `node_rate`:
    partial results/s that a saturated query node emits. None for both: not measured, then the
    number of aggregator nodes stays. `tasks`, `aggregators`: their present numbers, 0: not known.
    """

    name: str
    rate: float
    operator_s: float
    merge_s: float | None = None
    node_rate: float | None = None
    tasks: int = 0
    aggregators: int = 0

    def __post_init__(self) -> None:
        self._check("rate", self.rate, MAX_RATE)
        self._check("operator_s", self.operator_s, MAX_SECONDS)
        for name, most in (("merge_s", MAX_SECONDS), ("node_rate", MAX_RATE)):
            value = getattr(self, name)
            if value is not None:
                self._check(name, value, most)

    def _check(self, field: str, value: float, most: float) -> None:
        if not (is_finite(value) and 0 <= value <= most):
            why = f"must be from 0 to {most:g}, not {value!r}"
            raise BadProblem(f"queries.{self.name}.{field}", why)


@dataclass(frozen=True, eq=False)
class ScalingProblem:
    """One optimisation period.

    `interval_s`: seconds from one micro-batch to the next. `capacity`: records/s of a split node;
    `streams` float64[s, k]: the expected rates of the streams in the next k periods, without
    streams no number of split nodes is planned.
    """

    queries: Sequence[QueryLoad]
    interval_s: float
    capacity: float = 0.0
    streams: Floats | None = None

    def __post_init__(self) -> None:
        if not (is_finite(self.interval_s) and 0 < self.interval_s <= MAX_INTERVAL_S):
            why = f"must be above 0 and at most {MAX_INTERVAL_S:g}, not {self.interval_s!r}"
            raise BadProblem("interval_s", why)
        if self.streams is not None and not (is_finite(self.capacity) and self.capacity > 0):
            raise BadProblem("capacity", f"must be above 0, not {self.capacity!r}")


@dataclass(frozen=True)
class QueryScale:
    """The numbers of nodes that a query needs: n_p, and n_m or None if it is not known.

    `tasks`, `aggregators`: the numbers that it has after the period, see `next_count`.
    """

    query_nodes: int
    aggregator_nodes: int | None
    tasks: int
    aggregators: int


@dataclass(frozen=True)
class ScalingPlan:
    """The numbers of nodes of each query, and of split nodes; None: not planned.

    `utilisation`: the share of its time that a node may be busy.
    """

    queries: Sequence[QueryScale]
    split_nodes: int | None
    utilisation: float


@dataclass(frozen=True)
class Parallelism(Parameters):
    """The least numbers of nodes by equations 1a and 1b, from measured costs."""

    headroom: float = parameter(
        0.1, title="Head-room", letter="H", minimum=0.0, maximum=0.9,
        help="The share of its time that a node stays free.",
    )  # fmt: skip
    latency_s: float = parameter(
        0.0, title="Longest allowed latency", unit="s", minimum=0.0, maximum=MAX_SECONDS,
        help="The longest latency of a result, above one interval of micro-batches; 0: no bound.",
    )  # fmt: skip

    def solve(self, problem: ScalingProblem, progress: Progress = silent) -> ScalingPlan:
        """Return the numbers of nodes. Raises `LatencyTooShort`."""
        utilisation = self.utilisation(problem.interval_s)
        scales = [_scale_of(query, utilisation) for query in problem.queries]
        split_nodes = _split_nodes(problem.capacity, problem.streams)
        progress(1.0)
        return ScalingPlan(scales, split_nodes, utilisation)

    def utilisation(self, interval_s: float) -> float:
        """Return the share of its time that a node may be busy. Raises `LatencyTooShort`."""
        if not self.latency_s:
            return 1 - self.headroom
        longest = self.latency_s / interval_s - 1
        if longest <= 0:
            raise LatencyTooShort(self.latency_s, interval_s)
        return min(1 - self.headroom, longest)


def _scale_of(query: QueryLoad, utilisation: float) -> QueryScale:
    measured = query.merge_s is not None and query.node_rate is not None
    cost = ParallelCosts(
        query.operator_s, query.merge_s or 0.0, query.node_rate or 0.0, 1 - utilisation
    )
    count = query_nodes(query.rate, cost)
    merging = aggregator_nodes(count, cost) if measured else None
    return QueryScale(
        count,
        merging,
        next_count(query.tasks, count),
        query.aggregators if merging is None else next_count(query.aggregators, merging),
    )


def _split_nodes(capacity: float, streams: Floats | None) -> int | None:
    """Return the number of split nodes by best-fit decreasing over all periods."""
    if streams is None:
        return None
    order = np.argsort(-streams.max(axis=1, initial=0.0), kind="stable")
    return best_fit(order, streams, np.zeros((0, streams.shape[1])), capacity)[1]


def next_count(present: int, needed: int) -> int:
    """Return the number of tasks or nodes after a period.

    It falls only if the present number is more than twice the needed one, so that plans of
    consecutive periods do not alternate.
    """
    return needed if present < needed or present > 2 * needed else present


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
