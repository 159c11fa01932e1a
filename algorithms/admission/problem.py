"""The admission problem: streams with predicted rates on split nodes of limited capacity."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from algorithms.admission.prediction import Predictions
from algorithms.errors import PlanningError
from algorithms.vocabulary import Floats, Ints

NEW = -1
# Relative to a capacity.
ROUNDING = 1e-9


class StreamTooLarge(PlanningError):
    """The rate of a stream exceeds the capacity of every split node."""

    def __init__(self, stream: str, rate: float, capacity: float) -> None:
        super().__init__(
            f"stream {stream}: its rate of {rate:g} records/s exceeds the capacity of a split "
            f"node, {capacity:g}; divide it into partitions or raise the capacity"
        )
        self.stream, self.rate, self.capacity = stream, rate, capacity


@dataclass(frozen=True, eq=False)
class AdmissionProblem:
    """One optimisation period (Algorithm 1).

    `capacities` float64[m]: records/s of the split nodes; `capacity`: of a node to be opened.
    `owner` int64[s]: the node of each stream, -1 for a new one. `latency` float64[m]: moving
    averages of the latency of the nodes in seconds, None: not measured, then a node whose last
    rates exceed its capacity is overloaded.
    """

    capacity: float
    capacities: Floats
    owner: Ints
    predictions: Predictions
    latency: Floats | None = None
    stream_names: Sequence[str] = ()
    node_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        largest = max(self.capacity, float(self.capacities.max(initial=0.0)))
        too_large = self.predictions.average > largest * (1 + ROUNDING)
        if too_large.any():
            place = int(np.flatnonzero(too_large)[0])
            raise StreamTooLarge(self.name(place), float(self.predictions.average[place]), largest)

    @property
    def nodes(self) -> int:
        """Return the number of open split nodes."""
        return len(self.capacities)

    def name(self, stream: int) -> str:
        """Return the name of a stream."""
        return self.stream_names[stream] if self.stream_names else str(stream)

    def loads(self, sizes: Floats) -> Floats:
        """Return the sums float64[m, ...] of the sizes of the streams of each node."""
        placed = self.owner != NEW
        loads = np.zeros((self.nodes, *sizes.shape[1:]))
        np.add.at(loads, self.owner[placed], sizes[placed])
        return loads


@dataclass(frozen=True, eq=False)
class AdmissionPlan:
    """The assignment of streams to split nodes after one period.

    `assignment` int64[s]; `nodes`: their number, the opened ones last; `closed`: the nodes that no
    stream is on; `redirected`: the streams that have another node than before.
    """

    assignment: Ints
    nodes: int
    closed: tuple[int, ...]
    redirected: Ints

    @classmethod
    def of(cls, problem: AdmissionProblem, assignment: Ints, nodes: int) -> "AdmissionPlan":
        """Return the plan of an assignment to `nodes` nodes."""
        used = np.bincount(assignment, minlength=nodes) > 0
        moved = (problem.owner != NEW) & (assignment != problem.owner)
        closed = tuple(np.flatnonzero(~used).tolist())
        return cls(assignment, nodes, closed, np.flatnonzero(moved))
