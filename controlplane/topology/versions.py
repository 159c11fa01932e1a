"""Routing versions: each is decided by a conditional update of one row and never changes."""

import logging
from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import transaction

from controlplane.errors import Conflict, VersionMoved
from controlplane.events import traces
from controlplane.events.publish import announce, event
from controlplane.models import Cluster, Proposal, RoutingVersion
from controlplane.wire.routing.action_json import action_from_json, action_to_json
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.table import RoutingDelta

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
# Every lost race means that another writer stored its version; twenty in a row is a sick system.
TRIES = 20


def retry_when_moved(work: Callable[P, T]) -> Callable[P, T]:
    """Run a function in a transaction of its own, again if the routing version moved meanwhile."""
    return retry(transaction.atomic(work))


def retry(work: Callable[P, T]) -> Callable[P, T]:
    """Run a function again if the routing version moved meanwhile. It raises `Conflict` busy."""

    @wraps(work)
    def retried(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(TRIES):
            try:
                return work(*args, **kwargs)
            except VersionMoved as moved:
                logger.info("%s: trying again", moved)
        raise Conflict("busy", "The routing table changes too quickly; try again")

    return retried


def append(
    cluster_id: int,
    expected: int,
    actions: Sequence[Action],
    reason: str,
    *,
    actor: str = "",
    proposal: Proposal | None = None,
) -> RoutingVersion:
    """Write version expected + 1 in the caller's transaction.

    Raises `VersionMoved` if another writer was first: everything read since is out of date.
    """
    version = expected + 1
    claimed = Cluster.objects.filter(pk=cluster_id, routing_version=expected)
    if claimed.update(routing_version=version) != 1:
        raise VersionMoved(expected)
    row = RoutingVersion.objects.create(
        cluster_id=cluster_id,
        version=version,
        ops=[action_to_json(action) for action in actions],
        reason=reason[:300],
        actor=actor,
        proposal=proposal,
        traceparent=(proposal.traceparent if proposal else "") or traces.current(),
    )
    executed = None if proposal is None else proposal.pk
    announce(cluster_id, event("routing", reason, version=version, proposal=executed))
    return row


def delta_of(row: RoutingVersion) -> RoutingDelta:
    """Return the wire's delta of a stored version."""
    return RoutingDelta(row.version, tuple(action_from_json(op) for op in row.ops))


def version_of(cluster_id: int) -> int:
    """Return the newest decided version of a cluster's routing."""
    return Cluster.objects.values_list("routing_version", flat=True).get(pk=cluster_id)
