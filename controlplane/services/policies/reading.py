"""The policy of a cluster: what its row says, or the defaults."""

from controlplane.models import Cluster, Policy
from controlplane.problems.carrying import Caps


def policy_of(cluster: Cluster) -> Policy:
    """Return the cluster's policy; an unsaved one with the defaults where none was set."""
    return Policy.objects.filter(cluster=cluster).first() or Policy(cluster=cluster)


def caps_of(policy: Policy) -> Caps:
    """Return the bounds of one step of an execution."""
    return Caps(policy.node_moves, policy.cluster_moves, float(policy.bytes_per_s))
