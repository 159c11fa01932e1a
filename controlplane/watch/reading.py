"""What a watch loop reads: a measure and its limit."""

from dataclasses import dataclass
from typing import Final

from controlplane.wire.figures import Unit

# Units of figures and limits.
SHARE: Final = "share"
RATIO: Final = Unit.RATIO.value
MS: Final = Unit.MS.value
SECONDS: Final = "s"
NODES: Final = "nodes"
MOVES: Final = "moves"
RATE: Final = Unit.RATE.value


@dataclass(frozen=True)
class LoopReading:
    """A loop's measure and its limit in a unit, None if unknown.

    `trouble`: the measure exceeds the limit; `near`: it is within the dead band below the limit;
    `calm`: the code otherwise. `blocked`: the code if no plan can help, for the reason in `text`.
    """

    number: float | None
    limit: float | None
    text: str
    unit: str = SHARE
    trouble: bool = False
    near: bool = False
    calm: str = "within"
    blocked: str = ""


def above(
    number: float, limit: float, dead_band: float, text: str, unit: str = SHARE
) -> LoopReading:
    """Return the reading of a measure with an upper limit."""
    trouble = number > limit
    near = not trouble and number > limit * (1 - dead_band)
    return LoopReading(number, limit, text, unit, trouble, near)
