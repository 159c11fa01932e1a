"""Thresholds of measures, which the colours on the pages stand for.

The thresholds travel to the browser in data attributes, so that a live number is graded as the
server grades it.
"""

from dataclasses import dataclass

GOOD, WARN, BAD, UNKNOWN = "good", "warn", "bad", "unknown"


@dataclass(frozen=True)
class Limits:
    """The thresholds warn and bad of a measure that should be small."""

    warn: float
    bad: float

    def grade(self, value: float | None) -> str:
        """Return good, warn, bad, or unknown for no value."""
        if value is None:
            return UNKNOWN
        if value >= self.bad:
            return BAD
        return WARN if value >= self.warn else GOOD


# A tenth of a node's capacity is what the placement slack nu leaves by default; a quarter means
# that a node fills up while others idle.
IMBALANCE = Limits(0.10, 0.25)
# Load over capacity: from four fifths on a burst of a few seconds queues records.
LOAD = Limits(0.80, 1.0)
# Seconds without a sample: several micro-batches missed, then a driver that is most likely gone.
AGE_S = Limits(10.0, 60.0)
# Hours that a ready proposal waits: its snapshot ages with it.
WAITING_H = Limits(4.0, 24.0)


def latency(trigger_ms: int) -> Limits:
    """Return the thresholds of p95 latency, which includes one trigger and one batch."""
    return Limits(4.0 * trigger_ms, 10.0 * trigger_ms)


STATES = {
    "running": GOOD,
    "starting": WARN,
    "catching up": WARN,
    "degraded": WARN,
    "stuck": BAD,
    "crash loop": BAD,
    "needs decision": BAD,
    "undecided": BAD,
    "resolved": GOOD,
    "stopped": UNKNOWN,
    "failed": BAD,
    "pending": WARN,
    "ending": WARN,
    "ended": UNKNOWN,
    "queued": WARN,
    "cancelled": UNKNOWN,
    "computing": WARN,
    "ready": WARN,
    "approved": WARN,
    "executing": WARN,
    "paused": WARN,
    "rolling back": WARN,
    "rolled back": WARN,
    "done": GOOD,
    "rejected": UNKNOWN,
    "stale": BAD,
    "superseded": UNKNOWN,
    "waiting": UNKNOWN,
    "moving": WARN,
    "moved": GOOD,
    "moving back": WARN,
    "moved back": WARN,
    "left out": UNKNOWN,
    "not moved": UNKNOWN,
    "published": WARN,
    "restarted": WARN,
    "kept": UNKNOWN,
    "idle": GOOD,
    "terminated": UNKNOWN,
    "lost": BAD,
    "on": GOOD,
    "off": UNKNOWN,
    "not answering": BAD,
    "delivered": GOOD,
}
