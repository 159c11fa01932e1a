"""The limits of measures: all readers of a policy's limits of placements read them here."""

from collections.abc import Iterable

from algorithms.placement.online import LoadLimits
from controlplane.models import Cluster, ReachableMeasures
from controlplane.planning.measures import (
    FULLEST,
    GROWTH,
    IMBALANCE,
    REPLICATION_FACTOR,
    SKEW,
    SPLIT_OVERLOAD,
    STRANDED,
    aimed_values,
)
from controlplane.policies.settings import PolicySettings


def measure_limits(policy: PolicySettings, reachable: ReachableMeasures | None) -> dict[str, float]:
    """Return the limits by measure; none of the replication factor before something is reached."""
    limits = {
        IMBALANCE.name: policy.watch_imbalance,
        SKEW: policy.watch_skew,
        FULLEST.name: policy.watch_load,
        STRANDED.name: 0.0,
        SPLIT_OVERLOAD: 0.0,
    }
    if reachable is not None:
        least = max(1.0, reachable.replication_factor)
        limits[REPLICATION_FACTOR.name] = (1 + policy.watch_replication) * least
    return limits


def arrival_limits(cluster: Cluster, policy: PolicySettings) -> LoadLimits:
    """Return the limits of loads that the placement of new queries keeps.

    Once loads are measured, a new query may take some of the room that a plan has left.
    """
    aims = aimed_values(measure_limits(policy, None), policy.dead_band)
    room = GROWTH if cluster.last_sample_at is not None else 1.0
    return LoadLimits(room * aims[IMBALANCE.name], aims[FULLEST.name])


def cluster_limits(cluster: Cluster, policy: PolicySettings) -> dict[str, float]:
    """Return the limits of a cluster's measures as they are now."""
    return measure_limits(policy, reachable_of([cluster.pk]).get(cluster.pk))


def reachable_of(clusters: Iterable[int]) -> dict[int, ReachableMeasures]:
    """Return what placement reaches in clusters, by id, in one query."""
    rows = ReachableMeasures.objects.filter(cluster__in=list(clusters))
    return {row.cluster_id: row for row in rows}
