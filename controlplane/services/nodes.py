"""Nodes: what they can carry."""

import math

from controlplane.errors import Invalid
from controlplane.models import Node
from controlplane.services import routing
from controlplane.services.access import Actor, require_operator
from controlplane.services.deciding import Decision, carry_out
from controlplane.wire.routing import SetCapacity

# Ten million records/s is beyond any node; a larger number is a slip of the keyboard.
MAX_CAPACITY = 1e7


def set_capacity(
    actor: Actor, node: Node, capacity: float, reason: str = "", *, emulated: bool | None = None
) -> Node:
    """Declare the records/s a node can carry, and whether it is held to that (None: as it is).

    An emulated capacity goes out with a routing version of its own and takes effect at the next
    micro-batch. Raises `Forbidden`, `Invalid`.
    """
    require_operator(actor, node.cluster)
    if not (math.isfinite(capacity) and 0 < capacity <= MAX_CAPACITY):
        raise Invalid({"capacity": [f"Must be above 0 and at most {MAX_CAPACITY:,.0f} records/s"]})
    held = node.emulated if emulated is None else emulated
    return routing.retry_when_moved(lambda: _set_capacity(actor, node, capacity, held, reason))


def _set_capacity(actor: Actor, node: Node, capacity: float, held: bool, reason: str) -> Node:
    node.refresh_from_db()
    node.cluster.refresh_from_db(fields=["routing_version"])
    before = {"capacity": node.capacity, "emulated": node.emulated}
    node.capacity, node.emulated = capacity, held
    node.save(update_fields=["capacity", "emulated"])
    told, ops = f"{node.name} can carry {capacity:,.0f} records/s", []
    if held or before["emulated"]:
        told += ", and is held to that" if held else ", and is not held to it any more"
        ops = [SetCapacity(node.index, capacity if held else None)]
    decision = Decision(
        "node.capacity",
        f"{node.cluster.slug}/{node.name}",
        told,
        reason=reason,
        before=before,
        after={"capacity": capacity, "emulated": held},
        pk=node.pk,
    )
    carry_out(actor, node.cluster, ops, decision)
    return node
