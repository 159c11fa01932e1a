"""Creation of a cluster with equal nodes, through its description."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from pydantic import ValidationError

from controlplane.access.roles import ADMIN, Actor, require, require_viewer
from controlplane.cluster_spec.apply import apply_description
from controlplane.cluster_spec.document import (
    BadDescription,
    ClusterDescription,
    ClusterPart,
    NodePart,
)
from controlplane.cluster_spec.text import messages_of
from controlplane.clusters import changes
from controlplane.clusters.deletion import require_unused_slug
from controlplane.errors import Conflict, Fields, Invalid
from controlplane.models import Cluster
from controlplane.policies.store import policy_of, update_policy
from controlplane.topology.nodes import DEFAULT_CAPACITY, MAX_CAPACITY, MAX_NODES


@dataclass(frozen=True)
class NewCluster:
    """A cluster to create; `values`: fields of `ClusterPart`, `node_capacity` in records/s.

    `policy_of`: the cluster whose policy it gets, None for the defaults. `starts`: whether its
    application is started.
    """

    values: Mapping[str, Any]
    node_capacity: float = DEFAULT_CAPACITY
    policy_of: Cluster | None = None
    starts: bool = True


def create_cluster(
    actor: Actor, part: ClusterPart, node_capacity: float, reason: str = ""
) -> Cluster:
    """Create a stopped cluster whose nodes have a capacity (records/s).

    Raises `Forbidden` unless the actor is an admin of all clusters, `Conflict` (cluster_exists,
    slug_used), and `Invalid` by field.
    """
    require(actor, ADMIN)
    changes.check_log_url(part.log_url, part.slug)
    return _create(actor, part, node_capacity, reason)


def _create(actor: Actor, part: ClusterPart, node_capacity: float, reason: str) -> Cluster:
    """Create a cluster whose log is checked."""
    require_unused_slug(part.slug)
    nodes = [
        NodePart.model_validate(
            {"index": index, "name": f"node {index}", "capacity": node_capacity}
        )
        for index in range(part.slots)
    ]
    description = ClusterDescription(weir=1, cluster=part, nodes=nodes, ladder=None)
    try:
        apply_description(actor, description, apply=True, reason=reason, checks_log=False)
    except BadDescription as bad:
        raise Invalid(
            {name.removeprefix("cluster."): texts for name, texts in bad.faults.items()}
        ) from None
    return Cluster.objects.get(slug=part.slug)


def create_configured_cluster(actor: Actor, new: NewCluster, reason: str = "") -> Cluster:
    """Create a cluster with a policy and start it. Raises as `create_cluster`."""
    require(actor, ADMIN)
    part = _checked(new)
    changes.check_log_url(part.log_url, part.slug)
    with transaction.atomic():
        return _create_configured(actor, part, new, reason)


def _create_configured(actor: Actor, part: ClusterPart, new: NewCluster, reason: str) -> Cluster:
    try:
        cluster = _create(actor, part, new.node_capacity, reason)
    except Conflict as conflict:
        # The only conflicts are about the slug.
        raise Invalid({"slug": [str(conflict)]}) from None
    if new.policy_of is not None:
        require_viewer(actor, new.policy_of)
        update_policy(actor, cluster, policy_of(new.policy_of).to_json(), reason)
    return changes.start(actor, cluster, reason) if new.starts else cluster


def _checked(new: NewCluster) -> ClusterPart:
    """Return the fields of the cluster. Raises `Invalid` with the faults of all fields."""
    faults: Fields = {}
    if not 0 < new.node_capacity <= MAX_CAPACITY:
        faults["node_capacity"] = [f"Must be above 0 and at most {MAX_CAPACITY:,.0f}"]
    if not 1 <= new.values.get("slots", 1) <= MAX_NODES:
        faults["slots"] = [f"Must be 1 to {MAX_NODES:,}"]
    try:
        part = ClusterPart.model_validate(dict(new.values))
    except ValidationError as invalid:
        raise Invalid({**messages_of(invalid), **faults}) from None
    if faults:
        raise Invalid(faults)
    return part
