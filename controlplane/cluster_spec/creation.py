"""Creation of a cluster with equal nodes, through its description."""

from django.db import transaction

from controlplane.access.roles import ADMIN, Actor, require
from controlplane.cluster_spec.apply import apply_description
from controlplane.cluster_spec.document import (
    BadDescription,
    ClusterDescription,
    ClusterPart,
    NodePart,
)
from controlplane.clusters.deletion import require_unused_slug
from controlplane.errors import Invalid
from controlplane.models import Cluster


@transaction.atomic
def create_cluster(
    actor: Actor, part: ClusterPart, node_capacity: float, reason: str = ""
) -> Cluster:
    """Create a stopped cluster whose nodes have a capacity (records/s).

    Raises `Forbidden` unless the actor is an admin of all clusters, `Conflict` (cluster_exists,
    slug_used), and `Invalid` by field.
    """
    require(actor, ADMIN)
    require_unused_slug(part.slug)
    nodes = [
        NodePart.model_validate(
            {"index": index, "name": f"node {index}", "capacity": node_capacity}
        )
        for index in range(part.slots)
    ]
    description = ClusterDescription(weir=1, cluster=part, nodes=nodes, ladder=None)
    try:
        apply_description(actor, description, apply=True, reason=reason)
    except BadDescription as bad:
        raise Invalid(
            {name.removeprefix("cluster."): texts for name, texts in bad.faults.items()}
        ) from None
    return Cluster.objects.get(slug=part.slug)
