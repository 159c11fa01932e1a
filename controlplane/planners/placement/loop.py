"""The watch loop of the replication factor."""

from typing import Final

from controlplane.numbers import percent
from controlplane.planning.measures import REPLICATION_FACTOR
from controlplane.policies.measure_limits import measure_limits
from controlplane.watch.loop import WatchLoop
from controlplane.watch.observation import ClusterObservation
from controlplane.watch.reading import RATIO, LoopReading, above


def replication_reading(observed: ClusterObservation) -> LoopReading:
    """Return the reading of the replication factor, whose limit follows from what is reachable."""
    measured, reachable = observed.value("rf"), observed.reachable
    if measured is None:
        return LoopReading(None, None, "No records were delivered in the last minute")
    if reachable is None:
        return LoopReading(None, None, "What placement can reach is not computed yet")
    limit = measure_limits(observed.policy, reachable)[REPLICATION_FACTOR.name]
    text = (
        f"Replication factor {measured:.2f}, limit {limit:.2f} "
        f"({percent(observed.policy.watch_replication)} above the best reachable "
        f"{max(1.0, reachable.replication_factor):.2f})"
    )
    return above(measured, limit, observed.policy.dead_band, text, RATIO)


LOOPS: Final = (
    WatchLoop(
        "replication", "records delivered to several nodes", 50, replication_reading,
        REPLICATION_FACTOR.name,
    ),
)  # fmt: skip
