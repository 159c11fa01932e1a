"""What an edge of the data plane drops: records by chance, or whole windows (paper 003, section 2).

What is dropped is a pure function of the record and of what the routing table says, so a replay
drops the same, and every node that looks at a window comes to the same answer.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from controlplane.wire.errors import InconsistentDelta

# The query edge of a stream to a query is (stream, query); the input edge has no query.
INPUT: Final = 0
Edge = tuple[int, int]
# From an event time (ms) on, the share that is dropped.
Step = tuple[int, float]
ALWAYS: Final = -(2**62)


@dataclass(frozen=True, slots=True)
class DropRule:
    """What an edge drops.

    `steps`: from which event time (ms) on which share in [0, 1]; nothing before the first. A change
    is a further step, so that a window is never dropped in part. `window_ms`: 0 for a random drop;
    else windows of this length that begin every `slide_ms` are dropped whole, `batch` neighbours
    together. `seed`: edges with the same seed and windows drop the same windows.
    """

    steps: tuple[Step, ...]
    seed: int = 0
    window_ms: int = 0
    slide_ms: int = 0
    batch: int = 1

    @classmethod
    def of(cls, share: float, seed: int = 0) -> "DropRule":
        """Return a random drop of a share of all records."""
        return cls(((ALWAYS, share),), seed)

    def to_json(self) -> dict[str, Any]:
        """Return the drop as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "DropRule":
        """Return the drop that `to_json` wrote."""
        steps = tuple((int(since), float(share)) for since, share in row["steps"])
        return cls(**{**row, "steps": steps})

    def check(self) -> None:
        """Raise `InconsistentDelta` unless the shares, steps and windows make sense."""
        times = [since for since, _ in self.steps]
        if not self.steps or times != sorted(set(times)):
            raise InconsistentDelta(f"steps of a drop must be in rising order, got {times}")
        if any(not 0 <= share <= 1 for _, share in self.steps):
            raise InconsistentDelta(f"a dropped share is between 0 and 1, got {self.steps}")
        if self.window_ms and not (0 < self.slide_ms <= self.window_ms and self.batch > 0):
            raise InconsistentDelta(
                f"windows of {self.window_ms} ms cannot begin every {self.slide_ms} ms"
            )
