"""The watch loop of the skew of keys."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from controlplane.numbers import percent
from controlplane.planners.partitioning.skew_history import QuerySkew, recent_skews
from controlplane.planning.measures import SKEW
from controlplane.telemetry.measures import PRESENT
from controlplane.watch.loop import WatchLoop
from controlplane.watch.observation import ClusterObservation
from controlplane.watch.reading import LoopReading, above

# A text names so many queries.
_NAMED: Final = 3


def read_skew(observed: ClusterObservation) -> LoopReading:
    """Return the reading of the most skewed query."""
    split = observed.split_queries
    return skew_reading(
        observed, recent_skews(observed.cluster, observed.now - PRESENT) if split else ()
    )


def skew_reading(observed: ClusterObservation, skews: Sequence[QuerySkew]) -> LoopReading:
    """Return the reading of these skews of the split queries whose key grouping can change."""
    limit = observed.policy.watch_skew
    if not skews:
        if not observed.split_queries:
            return LoopReading(0.0, None, "No query with several tasks is running")
        return LoopReading(None, limit, "No keys were sampled in the last minute")
    worst = max(skews, key=lambda skew: skew.imbalance)
    text = f"Skew of {worst.name} {percent(worst.imbalance)}, limit {percent(limit)}"
    reading = above(worst.imbalance, limit, observed.policy.dead_band, text)
    exceeding = {skew.name for skew in skews if skew.imbalance > limit}
    if reading.trouble and exceeding <= observed.excluded_queries:
        text = f"{text}; excluded: {', '.join(sorted(exceeding)[:_NAMED])}"
        return replace(reading, blocked="excluded", text=text)
    return reading


LOOPS: Final = (
    WatchLoop(
        "skew", "the fullest task of a query, because of hot keys", 6, read_skew, SKEW,
        lambda policy: policy.watch_skew,
    ),
)  # fmt: skip
