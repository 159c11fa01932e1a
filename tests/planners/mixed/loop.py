"""A watch loop of the planner: the age of the oldest query."""

from controlplane.watch.loop import WatchLoop
from controlplane.watch.observation import ClusterObservation
from controlplane.watch.reading import SECONDS, LoopReading, above
from tests.planners.mixed.observation import read_input

LIMIT_S = 7 * 86_400.0


def read(observed: ClusterObservation) -> LoopReading:
    """Return the reading of the oldest query."""
    ages = read_input(observed.cluster).ages
    if not ages:
        return LoopReading(None, LIMIT_S, "No query is running")
    oldest = max(ages.values())
    text = f"The oldest query has been running for {oldest:,.0f} s"
    return above(oldest, LIMIT_S, observed.policy.dead_band, text, SECONDS)


LOOPS = (WatchLoop("oldest query", "how long the oldest query has been running", 90, read),)
