"""Reading from the rows of a cluster whether migration can plan for it."""

from controlplane.models import Cluster, Query
from controlplane.planners.migration.adapter import NO_SPLIT_QUERY
from controlplane.planning.adapter import Missing


def missing(cluster: Cluster, _: str) -> Missing | None:
    """Return what a cluster lacks for a plan."""
    split = cluster.queries.filter(state=Query.State.RUNNING, task_count__gt=1)
    return None if split.exists() else Missing("no_split_query", NO_SPLIT_QUERY)
