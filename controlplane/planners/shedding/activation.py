"""Activation of a rung for a bounded time: the pipeline keeps at least its position."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.utils import timezone

from controlplane.access.roles import Actor, require_operator
from controlplane.errors import Conflict, Fields, Invalid
from controlplane.models import ArmedLadder, Cluster
from controlplane.planners.shedding.arming import NEEDS_REASON, NOT_ARMED
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.versions import retry_when_moved
from controlplane.wire.routing.cluster_actions import SetLadder

MOST_MINUTES: Final = 24 * 60


@retry_when_moved
def activate(actor: Actor, cluster: Cluster, rung: int, minutes: int, reason: str) -> ArmedLadder:
    """Keep at least the position of a rung for so many minutes. Requires a reason.

    Raises `Forbidden`, `Invalid` per field, and `Conflict` not_armed.
    """
    require_operator(actor, cluster)
    present, row = _armed(cluster)
    _check(row, rung, minutes, reason)
    until = timezone.now() + timedelta(minutes=minutes)
    change = TopologyChange(
        f"{actor.name} activated drop level {rung} until {until:%Y-%m-%d %H:%M} UTC",
        "ladder.activate",
        cluster.slug,
        reason=reason.strip(),
        after={"rung": rung, "minutes": minutes},
    )
    apply(present, [SetLadder(replace(row.value, least=float(rung)))], change, actor=actor)
    columns = {"active_until": until, "active_by": actor.name, "active_reason": reason.strip()}
    ArmedLadder.objects.filter(cluster=cluster).update(**columns)
    return ArmedLadder.objects.get(cluster=cluster)


@retry_when_moved
def release(actor: Actor, cluster: Cluster, reason: str = "") -> ArmedLadder:
    """End the activation of a rung now.

    Raises `Forbidden`, and `Conflict` not_armed or not_active.
    """
    require_operator(actor, cluster)
    present, row = _armed(cluster)
    if not row.value.least:
        raise Conflict("not_active", "No drop level is activated on this cluster")
    change = TopologyChange(
        f"{actor.name} released drop level {row.value.least:g}",
        "ladder.release",
        cluster.slug,
        reason=reason.strip(),
        before={"rung": int(row.value.least)},
    )
    apply(present, [SetLadder(replace(row.value, least=0.0))], change, actor=actor)
    return ArmedLadder.objects.get(cluster=cluster)


@retry_when_moved
def end_expired(cluster: Cluster, now: datetime) -> bool:
    """End an activation whose time is over; return whether there was one."""
    expired = ArmedLadder.objects.filter(cluster=cluster, active_until__lte=now)
    if not expired.exists():
        return False
    present, row = _armed(cluster)
    message = f"the activation of drop level {row.value.least:g} is over"
    apply(present, [SetLadder(replace(row.value, least=0.0))], TopologyChange(message))
    return True


def _armed(cluster: Cluster) -> tuple[Cluster, ArmedLadder]:
    """Return the cluster with its version, then its armed ladder. Raises `Conflict`."""
    # The version first: what changes after it makes the append fail.
    present = Cluster.objects.get(pk=cluster.pk)
    row = ArmedLadder.objects.filter(cluster=cluster).first()
    if row is None:
        raise Conflict("not_armed", NOT_ARMED)
    return present, row


def _check(row: ArmedLadder, rung: int, minutes: int, reason: str) -> None:
    rungs = len(row.value.rungs)
    by_field = {
        "rung": [] if 1 <= rung <= rungs else [f"Must be 1 to {rungs}"],
        "minutes": [] if 1 <= minutes <= MOST_MINUTES else [f"Must be 1 to {MOST_MINUTES:,}"],
        "reason": [] if reason.strip() else [NEEDS_REASON],
    }
    faults: Fields = {field: messages for field, messages in by_field.items() if messages}
    if faults:
        raise Invalid(faults)
