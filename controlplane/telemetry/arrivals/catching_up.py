"""Catching up after an outage: records that were read, against records that arrived.

While a backlog is worked off, rates of reading and latencies measure the outage and not the load,
and tasks that move would take the records along that wait for them.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np

from algorithms.vocabulary import Flags
from controlplane.telemetry.grid import RAW, Grid
from controlplane.telemetry.trends import trend_of

# Without a newer sample, the driver has most likely failed.
OLD_S: Final = 30.0
# A slow cluster reports its batches less often.
OLD_TRIGGERS: Final = 10
# Seconds of input: a backlog of so much is left by every slow batch.
USUAL_S: Final = 5.0
USUAL_TRIGGERS: Final = 2
# Records that wait at nodes are worked off if they got fewer over so many seconds, and so fast that
# none are left after so many.
FALLS_S: Final = 30
SOON_S: Final = 600
SERIES: Final = ("arrived", "in", "waiting", "delivered")


@dataclass(frozen=True)
class CatchingUp:
    """A cluster that catches up: the seconds that a figure lasted, and its usual limit.

    `outage`: True if the time is that without a batch, False if it is that of the input that was
    read beyond what arrived, or of the deliveries that wait at nodes.
    """

    seconds: float
    limit: float
    outage: bool


def oldest_s(trigger_ms: int) -> float:
    """Return the age in seconds from which a sample shows an outage."""
    return max(OLD_S, OLD_TRIGGERS * trigger_ms / 1000)


def waited(periods: Grid, trigger_ms: int, seconds: int = RAW) -> Flags:
    """Return whether the records of periods waited for a start or through an outage, bool[t].

    `periods`: with the series `arrived`, of a length in seconds.
    """
    is_long = periods.measured_s > oldest_s(trigger_ms) + seconds
    result: Flags = is_long | np.isnan(periods["arrived"])
    return result


def catching_up(batches: Grid, trigger_ms: int) -> CatchingUp | None:
    """Return why these micro-batches show no load: an outage, or a backlog that is worked off.

    None if they do, also if the cluster reads less than arrives, or more and more records wait at
    nodes: then it is overloaded. `batches`: with the series `SERIES`.
    """
    oldest = oldest_s(trigger_ms)
    gap = float(batches.measured_s.max(initial=0.0))
    if gap > oldest:
        return CatchingUp(gap, oldest, outage=True)
    arrived, read, seconds = _totals(batches)
    if not len(batches):
        return None
    usual = max(USUAL_S, USUAL_TRIGGERS * trigger_ms / 1000)
    beyond = (read - arrived) / max(arrived / seconds, 1.0) if seconds else 0.0
    seconds = beyond if beyond > usual else _worked_off_s(batches)
    return CatchingUp(seconds, usual, outage=False) if seconds > usual else None


def _worked_off_s(batches: Grid) -> float:
    """Return for how many seconds of deliveries records wait at nodes, 0 unless it ends soon."""
    recent = batches.since(datetime.fromtimestamp(batches.times[-1] - FALLS_S, UTC))
    known = recent.where(~np.isnan(recent["waiting"]))
    trend = trend_of(known.times, known["waiting"])
    if trend is None or trend.after(SOON_S) > 0:
        return 0.0
    return trend.now / _delivered(batches)


def waiting_s(batches: Grid) -> float:
    """Return how many seconds of deliveries waited at nodes at most."""
    return float(np.nan_to_num(batches["waiting"]).max(initial=0.0)) / _delivered(batches)


def _delivered(batches: Grid) -> float:
    """Return the mean deliveries per second, at least 1."""
    return max(1.0, float(np.nan_to_num(batches["delivered"]).mean())) if len(batches) else 1.0


def input_share(batches: Grid) -> float:
    """Return the records that arrived per record that was read, 1 if it is not known.

    A rate of processed records times this is the rate that arriving records cause.
    """
    arrived, read, _ = _totals(batches)
    return arrived / read if read else 1.0


def _totals(batches: Grid) -> tuple[float, float, float]:
    """Return the records that arrived and that were read, and the seconds in which it is known."""
    known = batches.where(~np.isnan(batches["arrived"]))
    seconds = known.measured_s
    read = np.nan_to_num(known["in"])
    return float(known["arrived"] @ seconds), float(read @ seconds), float(seconds.sum())
