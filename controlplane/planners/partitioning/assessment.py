"""What was measured of key groupings after a plan."""

from collections.abc import Mapping
from datetime import datetime

from controlplane.models import Cluster
from controlplane.planners.partitioning.skew_history import recent_skews
from controlplane.planning.measures import SKEW


def measured(cluster: Cluster, since: datetime) -> Mapping[str, float]:
    """Return the mean skew of the most skewed query since a time, nothing if no key was sampled."""
    skews = [skew.imbalance for skew in recent_skews(cluster, since)]
    return {SKEW: max(skews)} if skews else {}
