"""The replication factor and its lower bound, which are cached, as they take a snapshot."""

import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from controlplane.errors import Conflict
from controlplane.models import Cluster
from controlplane.planning.adapters.placement import active_positions, placement_problem
from controlplane.planning.measures import measures
from controlplane.planning.snapshots import take_snapshot

# While queries come every second, so do versions, and neither figure changes much by one of them.
KEEP_S: Final = 60.0
# The rates change also where the version does not.
KEEP_SAME_S: Final = 600.0
# Of a hundred thousand queries it takes seconds: no more than one second in twenty goes into it.
KEEP_TIMES: Final = 20.0


@dataclass(frozen=True)
class Replication:
    """The factor of the queries of one task at a routing version, and what no plan undercuts.

    took_s: how long it took to compute.
    """

    version: int
    at: datetime
    factor: float
    bound: float
    took_s: float = 0.0


# By cluster; a process has its own. A database that was made anew counts its ids anew.
_KEPT: Final[dict[tuple[int, datetime], Replication]] = {}


def replication_of(cluster: Cluster, now: datetime) -> Replication | None:
    """Return both as of the routing version, or of a minute ago; None with nothing to place."""
    key = cluster.pk, cluster.created_at
    kept = _KEPT.get(key)
    if kept is not None:
        most = KEEP_SAME_S if kept.version == cluster.routing_version else KEEP_S
        if (now - kept.at).total_seconds() < max(most, KEEP_TIMES * kept.took_s):
            return kept
    started = time.monotonic()
    computed = _computed(cluster, now)
    if computed is not None:
        computed = _KEPT[key] = replace(computed, took_s=time.monotonic() - started)
    return computed


def _computed(cluster: Cluster, now: datetime) -> Replication | None:
    try:
        snapshot = take_snapshot(cluster.pk, cluster.nu)
        problem = placement_problem(snapshot, len(active_positions(snapshot)))
    except Conflict:
        return None
    factor = measures(snapshot)["replication_factor"]
    if factor is None or not problem.live_rate:
        return None
    bound = problem.lower_bound(problem.caps) / problem.live_rate
    return Replication(snapshot.version, now, factor, max(1.0, bound))
