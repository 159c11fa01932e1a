"""The watch loop of the replication factor that placement can change."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from controlplane.errors import Conflict
from controlplane.models import Cluster
from controlplane.planners.placement.adapter import replication_bound
from controlplane.planning.measures import REPLICATION_FACTOR, measures
from controlplane.planning.snapshots import take_snapshot
from controlplane.watch.loop import WatchLoop
from controlplane.watch.observation import ClusterObservation
from controlplane.watch.reading import RATIO, LoopReading, above

# Seconds before a new version makes a value stale: a single query changes it little.
KEEP_S: Final = 60.0
# Seconds for an unchanged version, as rates change.
KEEP_SAME_S: Final = 600.0
# At most a twentieth of the time goes into the computation.
KEEP_TIMES: Final = 20.0


@dataclass(frozen=True)
class Replication:
    """The replication factor of the queries of one task at a routing version, and its lower bound.

    `took_s`: the duration of the computation.
    """

    version: int
    computed_at: datetime
    factor: float
    bound: float
    took_s: float = 0.0


# By cluster and its time of creation, as a new database reuses ids.
_KEPT: Final[dict[tuple[int, datetime], Replication]] = {}


def replication_of(cluster: Cluster, now: datetime) -> Replication | None:
    """Return the cached or computed values, None if there is nothing to place."""
    key = cluster.pk, cluster.created_at
    kept = _KEPT.get(key)
    if kept is not None:
        most = KEEP_SAME_S if kept.version == cluster.routing_version else KEEP_S
        if (now - kept.computed_at).total_seconds() < max(most, KEEP_TIMES * kept.took_s):
            return kept
    started = time.monotonic()
    computed = _computed(cluster, now)
    if computed is not None:
        computed = _KEPT[key] = replace(computed, took_s=time.monotonic() - started)
    return computed


def _computed(cluster: Cluster, now: datetime) -> Replication | None:
    try:
        snapshot = take_snapshot(cluster.pk, cluster.nu)
    except Conflict:
        return None
    factor, bound = measures(snapshot)["replication_factor"], replication_bound(snapshot)
    return Replication(snapshot.version, now, factor, bound) if factor and bound else None


def replication_reading(
    observed: ClusterObservation,
    computed: Callable[[Cluster, datetime], Replication | None] = replication_of,
) -> LoopReading:
    """Return the reading of the replication factor, whose limit follows from its lower bound."""
    measured, times = observed.middle("rf"), observed.policy.watch_replication
    if measured is None:
        return LoopReading(None, None, "No records were delivered in the last minute")
    if measured <= times:
        # Every bound is at least 1, so the expensive computation is unnecessary.
        text = f"Replication factor {measured:.2f}, limit {times:g} times its lower bound"
        return LoopReading(measured, times, text, RATIO)
    replication = computed(observed.cluster, observed.now)
    if replication is None:
        return LoopReading(None, None, "No query of one task is running")
    # Placement does not change the records of split queries.
    number = replication.factor if observed.split_queries else measured
    limit = times * replication.bound
    text = f"Replication factor {number:.2f}, limit {limit:.2f}: {times:g} times its lower bound"
    return above(number, limit, observed.policy.dead_band, text, RATIO)


LOOPS: Final = (
    WatchLoop(
        "replication", "records delivered to several nodes", 50, replication_reading,
        REPLICATION_FACTOR.name,
    ),
)  # fmt: skip
