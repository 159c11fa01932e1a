"""Drop rules of edges: a random sample of records, or whole windows (paper 003, section 2).

A rule is a pure function of the record and the routing table: a replay drops the same records, and
all nodes drop the same windows. Changes never drop a window in part: a new share takes effect at
the first group of windows without records, and the step of an earlier group is kept as long as
records may arrive for the group.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from controlplane.formats.json_values import JsonValue
from controlplane.wire.errors import InconsistentDelta

# The edge of a stream to a query is (stream, query); the input edge has no query.
INPUT: Final = 0
Edge = tuple[int, int]
# From an event time (ms) on, the share that is dropped.
Step = tuple[int, float]
ALWAYS: Final = -(2**62)


@dataclass(frozen=True, slots=True)
class DropRule(JsonValue):
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


def first_group(rule: DropRule, after_ms: int | None) -> int:
    """Return the start (ms) of the first group of windows without records up to `after_ms`.

    None: no record was ever seen.
    """
    if after_ms is None:
        return ALWAYS
    group = rule.slide_ms * rule.batch
    return (after_ms // group + 1) * group


def add_step(rule: DropRule, since_ms: int, share: float) -> DropRule | None:
    """Return the rule with a share from `since_ms` on, no later steps; None if it drops nothing."""
    before = [step for step in rule.steps if step[0] < since_ms]
    return _of(rule, [*before, (since_ms, share)])


def remove_old_steps(rule: DropRule, since_ms: int) -> DropRule | None:
    """Return the rule with the steps from `since_ms` on; None if it drops nothing any more."""
    return _of(rule, [step for step in rule.steps if step[0] >= since_ms])


def needed_since(rule: DropRule, oldest_ms: int) -> int | None:
    """Return the first needed step (ms) if no record before `oldest_ms` comes.

    A group of windows that begins before a step has records up to the end of its last window.
    None: all steps are needed.
    """
    reach = (rule.batch - 1) * rule.slide_ms + rule.window_ms
    stop = [since for since, _ in rule.steps if since + reach <= oldest_ms]
    # The first step alone has nothing before it that could go, unless it drops nothing itself.
    return stop[-1] if stop and (len(stop) > 1 or rule.steps[0][1] == 0) else None


def _of(rule: DropRule, steps: Sequence[Step]) -> DropRule | None:
    kept: list[Step] = []
    for step in steps:
        # Before the first step nothing is dropped, and the same share is not a change.
        if step[1] != (kept[-1][1] if kept else 0.0):
            kept.append(step)
    return replace(rule, steps=tuple(kept)) if kept else None
