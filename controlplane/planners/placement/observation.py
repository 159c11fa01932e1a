"""Reading the input of the placement planner from the rows of a cluster."""

from algorithms.placement.planner import IMPROVE
from controlplane.models import Cluster, Query
from controlplane.planners.placement.adapter import NO_WHOLE_QUERY
from controlplane.planners.placement.improvement import NO_NODE, NO_QUERY
from controlplane.planners.placement.policy_limits import PolicyLimits
from controlplane.planning.adapter import Missing
from controlplane.policies.measure_limits import cluster_limits
from controlplane.policies.store import policy_of


def read_input(cluster: Cluster) -> PolicyLimits:
    """Return the limits of a cluster's policy as it is now."""
    policy = policy_of(cluster)
    return PolicyLimits.of(cluster_limits(cluster, policy), policy.dead_band)


def missing(cluster: Cluster, algorithm: str) -> Missing | None:
    """Return what a cluster lacks for a plan of an algorithm; most place queries of one task."""
    if not cluster.nodes.filter(active=True).exists():
        return Missing("no_node", NO_NODE)
    running = cluster.queries.filter(state=Query.State.RUNNING)
    if algorithm == IMPROVE:
        return None if running.exists() else Missing("no_query", NO_QUERY)
    return None if running.filter(task_count=1).exists() else Missing("no_query", NO_WHOLE_QUERY)
