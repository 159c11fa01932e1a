"""A change of the routing that an operator decided: its version, its audit row, its event."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controlplane.models import Cluster, RoutingVersion
from controlplane.services import audit, routing
from controlplane.services.access import Actor
from controlplane.services.events import announce, event
from controlplane.wire.routing import Op


@dataclass(frozen=True)
class Decision:
    """What was decided: action, subject and reason for the audit log, `told` for people.

    before and after are what changed; pk is the row that a browser may be showing.
    """

    action: str
    subject: str
    told: str
    reason: str = ""
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    pk: int | None = None


def carry_out(
    actor: Actor, cluster: Cluster, ops: Sequence[Op], decision: Decision
) -> RoutingVersion | None:
    """Write a decision down in the caller's transaction; returns the version of its operations.

    Without operations there is none: the pipeline need not know. `cluster` says the version that
    the decision was made for. Raises `VersionMoved`.
    """
    version = None
    if ops:
        version = routing.append(
            cluster.pk, cluster.routing_version, ops, decision.told, actor=actor.name
        )
    audit.record(
        actor,
        decision.action,
        decision.subject,
        cluster=cluster,
        reason=decision.reason,
        before=decision.before,
        after=decision.after,
    )
    announce(cluster.pk, event("state", decision.told, pk=decision.pk))
    return version
