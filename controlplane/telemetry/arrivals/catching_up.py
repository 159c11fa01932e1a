"""Catching up after an outage: records that were read, against records that arrived.

While a backlog is worked off, rates of reading and latencies measure the outage and not the load.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Sample = Mapping[str, Any]

# Without a newer sample, the driver has most likely failed.
OLD_S: Final = 30.0
# A slow cluster reports its batches less often.
OLD_TRIGGERS: Final = 10
# Seconds of input: a backlog of so much is left by every slow batch.
USUAL_S: Final = 5.0
USUAL_TRIGGERS: Final = 2


@dataclass(frozen=True)
class CatchingUp:
    """A cluster that catches up: the seconds that a figure lasted, and its usual limit.

    `outage`: True if the time is that without a batch, False if it is that of the input that was
    read beyond what arrived.
    """

    seconds: float
    limit: float
    outage: bool


def oldest_s(trigger_ms: int) -> float:
    """Return the age in seconds from which a sample shows an outage."""
    return max(OLD_S, OLD_TRIGGERS * trigger_ms / 1000)


def catching_up(samples: Sequence[Sample], trigger_ms: int) -> CatchingUp | None:
    """Return why these samples show no load: an outage, or a backlog that is worked off.

    None if they do, also if the cluster reads less than arrives: then it is overloaded.
    """
    oldest = oldest_s(trigger_ms)
    gap = max((sample.get("span_s") or 0.0 for sample in samples), default=0.0)
    if gap > oldest:
        return CatchingUp(gap, oldest, outage=True)
    known = [s for s in samples if s.get("arrived") is not None and s.get("span_s")]
    arrived = sum(sample["arrived"] * sample["span_s"] for sample in known)
    read = sum(sample["in"] * sample["span_s"] for sample in known)
    usual = max(USUAL_S, USUAL_TRIGGERS * trigger_ms / 1000)
    seconds = sum(sample["span_s"] for sample in known)
    beyond = (read - arrived) / max(arrived / seconds, 1.0) if known else 0.0
    return CatchingUp(beyond, usual, outage=False) if beyond > usual else None


def input_share(samples: Sequence[Sample]) -> float:
    """Return the records that arrived per record that was read, 1 if it is not known.

    A rate of processed records times this is the rate that arriving records cause.
    """
    known = [sample for sample in samples if sample.get("arrived") is not None]
    arrived = sum(sample["arrived"] * (sample.get("span_s") or 1.0) for sample in known)
    read = sum(sample["in"] * (sample.get("span_s") or 1.0) for sample in known)
    return arrived / read if read else 1.0


def load_of(sample: Sample, node: int) -> float | None:
    """Return the records/s that arriving records cause for a node; None if it did not report."""
    loads: Sequence[float] = sample.get("loads") or ()
    return loads[node] * input_share([sample]) if node < len(loads) else None
