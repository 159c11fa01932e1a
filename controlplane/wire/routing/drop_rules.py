"""Drop rules of edges: a random sample of records, or whole windows (paper 003, section 2).

A rule is a pure function of the record and the routing table: a replay drops the same records, and
all nodes drop the same windows.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from controlplane.wire.errors import InconsistentDelta

# The edge of a stream to a query is (stream, query); the input edge has no query.
INPUT: Final = 0
Edge = tuple[int, int]
# From an event time (ms) on, the share that is dropped.
Step = tuple[int, float]
ALWAYS: Final = -(2**62)


@dataclass(frozen=True, slots=True)
class DropRule:
    """The drop rule of an edge.

    `steps`: the share in [0, 1] from each event time (ms) on; 0 before the first. A change adds a
    step, so that no window is dropped in part. `window_ms`: 0 for a random sample of records; else
    whole windows of this length are dropped, which begin every `slide_ms`, in groups of `batch`
    neighbours. `seed`: edges with the same seed and windows drop the same windows.
    """

    steps: tuple[Step, ...]
    seed: int = 0
    window_ms: int = 0
    slide_ms: int = 0
    batch: int = 1

    @classmethod
    def of(cls, share: float, seed: int = 0) -> "DropRule":
        """Return a rule that drops a random share of all records."""
        return cls(((ALWAYS, share),), seed)

    def to_json(self) -> dict[str, Any]:
        """Return the rule as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "DropRule":
        """Return the rule that `to_json` wrote."""
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
