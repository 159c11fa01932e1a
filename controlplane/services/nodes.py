"""Nodes: what they can carry."""

import math

from django.db import transaction

from controlplane.errors import Invalid
from controlplane.models import Node
from controlplane.services import audit
from controlplane.services.access import Actor, require_operator
from controlplane.services.events import announce, event

# Ten million records/s is beyond any node; a larger number is a slip of the keyboard.
MAX_CAPACITY = 1e7


@transaction.atomic
def set_capacity(actor: Actor, node: Node, capacity: float, reason: str = "") -> Node:
    """Declare the records/s a node can carry. Raises `Forbidden`, `Invalid`."""
    require_operator(actor)
    if not (math.isfinite(capacity) and 0 < capacity <= MAX_CAPACITY):
        raise Invalid({"capacity": [f"Must be above 0 and at most {MAX_CAPACITY:,.0f} records/s"]})
    before = {"capacity": node.capacity}
    node.capacity = capacity
    node.save(update_fields=["capacity"])
    audit.record(
        actor,
        "node.capacity",
        f"{node.cluster.slug}/{node.name}",
        cluster=node.cluster,
        reason=reason,
        before=before,
        after={"capacity": capacity},
    )
    told = f"{node.name} can carry {capacity:,.0f} records/s"
    announce(node.cluster_id, event("state", told, pk=node.pk))
    return node
