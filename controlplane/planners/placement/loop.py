"""The watch loop of the replication factor that placement can change."""

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
    # Placement does not change the records of split queries.
    number, of = measured, ""
    if observed.split_queries:
        number, of = reachable.factor, f" of unsplit queries at {reachable.computed_at:%H:%M}"
    limit = measure_limits(observed.policy, reachable)[REPLICATION_FACTOR.name]
    text = (
        f"Replication factor{of} {number:.2f}, limit {limit:.2f}: "
        f"{percent(observed.policy.watch_replication)} above the best reachable"
    )
    return above(number, limit, observed.policy.dead_band, text, RATIO)


LOOPS: Final = (
    WatchLoop(
        "replication", "records delivered to several nodes", 50, replication_reading,
        REPLICATION_FACTOR.name,
    ),
)  # fmt: skip
