"""Estimates of the memory and time that a computation needs, from its parameters, before it runs.

An estimate is an upper bound on an ordinary machine, within a factor for sample parameters
(tests/algorithms/test_estimates.py). It does not replace the limits of a running computation.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MB: Final = 1 << 20
# Imports and compiled code that a computation loads first.
_START_BYTES: Final = 120 * MB
_START_S: Final = 1.0


@dataclass(frozen=True)
class Estimate:
    """Bytes of memory and seconds of time."""

    bytes: float
    seconds: float

    def exceeds(self, memory_bytes: float, seconds: float) -> bool:
        """Return whether it is above one of these limits."""
        return self.bytes > memory_bytes or self.seconds > seconds

    def plus(self, seconds: float, memory_bytes: float = 0.0) -> "Estimate":
        """Return the estimate with more time and memory."""
        return Estimate(self.bytes + memory_bytes, self.seconds + seconds)

    def to_json(self) -> dict[str, int | float]:
        """Return the figures as JSON values."""
        return {"bytes": round(self.bytes), "seconds": round(self.seconds, 1)}


@dataclass(frozen=True)
class ProblemSize:
    """The size of a cluster as planners see it; `readings`: pairs of a query and a stream."""

    queries: int
    readings: int
    streams: int
    nodes: int


def total(estimates: Iterable[Estimate]) -> Estimate:
    """Return the estimate of computations one after the other, in one process."""
    listed = list(estimates)
    return Estimate(
        _START_BYTES + max((item.bytes for item in listed), default=0.0),
        _START_S + sum(item.seconds for item in listed),
    )
