"""Thresholds of measures, which determine colours on the pages.

Data attributes send the thresholds to the browser, which grades live numbers in the same way.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.plans.proposal_states import State
from controlplane.proposals.listing import ENDED_EARLY

GOOD, WARN, BAD, UNKNOWN = "good", "warn", "bad", "unknown"


@dataclass(frozen=True)
class MeasureThresholds:
    """The thresholds warn and bad of a measure with upper limits."""

    warn: float
    bad: float

    def grade(self, value: float | None) -> str:
        """Return good, warn, bad, or unknown for no value."""
        if value is None:
            return UNKNOWN
        if value >= self.bad:
            return BAD
        return WARN if value >= self.warn else GOOD


# Load over capacity: from 80 % on, short bursts cause a backlog.
LOAD = MeasureThresholds(0.80, 1.0)
# Seconds without a sample: some missing micro-batches, then most likely a failed driver.
AGE_S = MeasureThresholds(10.0, 60.0)


# The states of each level.
_STATES = {
    GOOD: "running, resolved, done, moved, idle, on, delivered, writing",
    WARN: "starting, catching up, degraded, pending, ending, queued, computing, ready, approved,"
          " executing, paused, rolling back, rolled back, moving, moving back, moved back,"
          " published, restarted",
    UNKNOWN: "stopped, ended, cancelled, rejected, no better plan, superseded, waiting, kept,"
             " terminated, off",
    BAD: "stuck, crash loop, needs decision, undecided, failed, stale, lost, not answering,"
         " failing, behind",
}  # fmt: skip
STATES = {state: grade for grade, states in _STATES.items() for state in states.split(", ")}
# Grade and icon of the chips of proposals. Colour means good or bad, so most states have none.
STATE_CHIPS: Final[Mapping[str, tuple[str, str]]] = {
    State.COMPUTING: ("info", "clock"),
    State.READY: ("info", "clock"),
    State.NO_BETTER_PLAN: ("", "close"),
    State.APPROVED: ("info", "clock"),
    State.EXECUTING: ("info", "play"),
    State.PAUSED: ("warn", "pause"),
    State.ROLLING_BACK: ("warn", "undo"),
    State.DONE: ("good", "ok"),
    State.REJECTED: ("", "close"),
    State.STALE: ("bad", "exceeded"),
    State.FAILED: ("bad", "exceeded"),
    State.STOPPED: ("warn", "stop"),
    State.ROLLED_BACK: ("", "undo"),
    State.SUPERSEDED: ("", "close"),
    ENDED_EARLY: ("warn", "stop"),
}
