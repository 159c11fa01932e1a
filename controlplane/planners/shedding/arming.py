"""Arming a ladder of drop rules now, and disarming it, perhaps for a bounded time."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from algorithms import optimizers
from algorithms.errors import PlanningError
from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.child_processes.errors import Exhausted
from controlplane.errors import Conflict, Fields, Invalid
from controlplane.events.publish import announce, event
from controlplane.models import ArmedLadder, Cluster, DisarmedLadder, Proposal
from controlplane.planners.shedding.adapter import NO_PLAN
from controlplane.planners.shedding.ladder import compute_ladder
from controlplane.planners.shedding.observation import read_input
from controlplane.planning.snapshots import keep_snapshot, take_snapshot
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.processes.isolation.child import run_in_child
from controlplane.processes.isolation.limits import ladder_limits
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.versions import retry, retry_when_moved
from controlplane.wire.routing.cluster_actions import SetLadder
from controlplane.wire.routing.ladder import Ladder

NEEDS_REASON: Final = "Give a reason: it is kept in the audit log"
NOT_ARMED: Final = "No shedding plan is enabled on this cluster"
# The longest time after which a ladder is armed again.
MOST_MINUTES: Final = 7 * 24 * 60


@dataclass(frozen=True)
class ComputedLadder:
    """A ladder, and the snapshot from which it was computed."""

    ladder: Ladder
    snapshot: ClusterSnapshot


def compute(cluster: Cluster) -> ComputedLadder:
    """Return the ladder for the present rates, costs and queries of a cluster.

    Raises `Conflict` no_query, no_rates, no_costs, no_plan, too_large, out_of_memory or
    out_of_time.
    """
    snapshot = take_snapshot(cluster.pk, cluster.nu, {read_input})
    return ComputedLadder(ladder_of(snapshot), snapshot)


def ladder_of(snapshot: ClusterSnapshot) -> Ladder:
    """Return the ladder of a snapshot, which a child computes. Raises as `compute`."""
    optimizers.load()
    try:
        ladder = run_in_child(lambda _: compute_ladder(snapshot), ladder_limits())
    except PlanningError as error:
        raise Conflict("no_plan", f"There is no optimal plan: {error}") from None
    except Exhausted as error:
        data = {"limit": error.limit, "used": error.used}
        raise Conflict(error.code, str(error), data) from None
    if ladder is None:
        raise Conflict("no_plan", NO_PLAN)
    return ladder


@retry
def arm(actor: Actor, cluster: Cluster, reason: str) -> ArmedLadder:
    """Compute the ladder and arm it, in place of an armed one. Requires a reason.

    Raises `Forbidden`, `Invalid`, and the errors of `compute`.
    """
    require_operator(actor, cluster)
    _require_reason(reason)
    # Outside of the transaction: the plan of a large cluster takes seconds.
    computed = compute(cluster)
    return _arm(actor, cluster, computed, reason.strip())


@transaction.atomic
def _arm(actor: Actor, cluster: Cluster, computed: ComputedLadder, reason: str) -> ArmedLadder:
    present = Cluster.objects.get(pk=cluster.pk)
    present.routing_version = computed.snapshot.version
    replaced = ArmedLadder.objects.filter(cluster=cluster).first()
    change = TopologyChange(
        f"{actor.name} enabled a shedding plan of {len(computed.ladder.rungs)} drop levels",
        "ladder.arm",
        cluster.slug,
        reason=reason,
        before=ladder_summary(None if replaced is None else replaced.value),
        after=ladder_summary(computed.ladder),
        snapshot=keep_snapshot(computed.snapshot).digest,
    )
    if replaced is not None and replaced.value == computed.ladder:
        _record(actor, cluster, change)
    else:
        apply(present, [SetLadder(computed.ladder)], change, actor=actor)
    # A ladder that is armed already is also that of the newer snapshot.
    columns = {
        "snapshot_id": change.snapshot,
        "set_by": actor.name,
        "set_at": timezone.now(),
        "reason": change.reason,
    }
    ArmedLadder.objects.filter(cluster=cluster).update(**columns)
    return ArmedLadder.objects.get(cluster=cluster)


def confirm_ladder(proposal: Proposal) -> bool:
    """Let the armed ladder refer to the snapshot of a plan that computed the same ladder again.

    Return False if another ladder was armed meanwhile.
    """
    row = ArmedLadder.objects.filter(cluster=proposal.cluster).first()
    if row is None or row.ladder != proposal.snapshot.ladder:
        return False
    ArmedLadder.objects.filter(pk=row.pk, since_version=row.since_version).update(
        snapshot=proposal.snapshot_row
    )
    return True


def _record(actor: Actor, cluster: Cluster, change: TopologyChange) -> None:
    """Record that a ladder which is armed already was computed again."""
    audit.record(
        actor,
        change.action,
        change.subject,
        cluster=cluster,
        reason=change.reason,
        before=change.before,
        after=change.after,
    )
    announce(cluster.pk, event("state", change.summary))


@retry_when_moved
def disarm(actor: Actor, cluster: Cluster, reason: str, minutes: int = 0) -> DisarmedLadder | None:
    """Disarm the ladder: from the next batch on, nothing is dropped by it. Requires a reason.

    `minutes`: Weir arms the same ladder again after so many, 0: never. A ladder that is disarmed
    for a bounded time already gets the new time. Raises `Forbidden`, `Invalid` per field, and
    `Conflict` not_armed.
    """
    require_operator(actor, cluster)
    _check_disarming(reason, minutes)
    present = Cluster.objects.get(pk=cluster.pk)
    row = ArmedLadder.objects.filter(cluster=cluster).first()
    known = row or DisarmedLadder.objects.filter(cluster=cluster).first()
    if known is None:
        raise Conflict("not_armed", NOT_ARMED)
    arm_at = timezone.now() + timedelta(minutes=minutes) if minutes else None
    until = "" if arm_at is None else f" until {arm_at:%Y-%m-%d %H:%M} UTC"
    change = TopologyChange(
        f"{actor.name} disabled the shedding plan{until}",
        "ladder.disarm",
        cluster.slug,
        reason=reason.strip(),
        before=ladder_summary(known.value),
        after={"minutes": minutes} if minutes else {},
    )
    if row is None:
        _record(actor, cluster, change)
    else:
        apply(present, [SetLadder(None)], change, actor=actor)
    if arm_at is None:
        DisarmedLadder.objects.filter(cluster=cluster).delete()
        return None
    return _keep_until(arm_at, known, actor, change.reason)


def _keep_until(
    arm_at: datetime, known: ArmedLadder | DisarmedLadder, actor: Actor, reason: str
) -> DisarmedLadder:
    """Store a ladder that is armed again at a moment, without the activation of a rung."""
    columns = {
        "ladder": replace(known.value, least=0.0).to_json(),
        "snapshot_id": known.snapshot_id,
        "arm_at": arm_at,
        "disarmed_by": actor.name,
        "reason": reason,
    }
    return DisarmedLadder.objects.update_or_create(cluster=known.cluster, defaults=columns)[0]


@retry_when_moved
def arm_due(cluster: Cluster, now: datetime) -> bool:
    """Arm a ladder again whose time without it is over; return whether there was one."""
    present = Cluster.objects.get(pk=cluster.pk)
    row = DisarmedLadder.objects.filter(cluster=cluster, arm_at__lte=now).first()
    if row is None:
        return False
    summary = f"the shedding plan that {row.disarmed_by} disabled is enabled again"
    change = TopologyChange(summary, reason=row.reason, snapshot=row.snapshot_id)
    apply(present, [SetLadder(row.value)], change)
    return True


def _check_disarming(reason: str, minutes: int) -> None:
    faults: Fields = {}
    if not 0 <= minutes <= MOST_MINUTES:
        faults["minutes"] = [f"Must be 0 to {MOST_MINUTES:,}"]
    if not reason.strip():
        faults["reason"] = [NEEDS_REASON]
    if faults:
        raise Invalid(faults)


def _require_reason(reason: str) -> None:
    if not reason.strip():
        raise Invalid({"reason": [NEEDS_REASON]})


def ladder_summary(ladder: Ladder | None) -> dict[str, Any]:
    """Return what the audit log keeps of a ladder."""
    if ladder is None:
        return {}
    return {
        "rungs": [rung.factor for rung in ladder.rungs],
        "edges": len(ladder.edges),
        "limit": ladder.limit,
    }
