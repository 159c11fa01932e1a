"""The watch loops of load shedding: a full cluster, and an armed ladder that is stale.

An operator who arms a provisional ladder wants the measured one: weights and floors are the same.
It comes as soon as costs are measured, without a person or a plan.
"""

import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.db import transaction

from controlplane.child_processes.errors import OutOfMemory, OutOfTime
from controlplane.errors import Conflict
from controlplane.models import ArmedLadder, Cluster
from controlplane.numbers import percent
from controlplane.planners.shedding.adapter import PEAK_LOAD
from controlplane.planners.shedding.arming import compute, confirm_ladder
from controlplane.planners.shedding.observation import read_input
from controlplane.planners.shedding.staleness import LadderDrift, StaleCode, drift_of
from controlplane.planning.snapshots import keep_snapshot
from controlplane.policies.settings import PolicySettings
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.versions import retry
from controlplane.watch.codes import STALE, is_calm
from controlplane.watch.decision_log import UNSEEN, last_decision
from controlplane.watch.loop import WatchLoop
from controlplane.watch.observation import ClusterObservation
from controlplane.watch.reading import LoopReading, above
from controlplane.wire.routing.cluster_actions import SetLadder

LADDER: Final = "ladder"
CAPACITY: Final = "capacity"
# At most a twentieth of the time goes into the comparison with the snapshot.
KEEP_TIMES: Final = 20.0


@dataclass(frozen=True)
class ObservedLadder:
    """An armed ladder: its drift, and for how many seconds the loop has read that it is stale.

    `is_trouble`: the last decision of the loop was about a ladder that was stale for long enough.
    """

    drift: LadderDrift
    stale_s: float
    is_trouble: bool

    def reasons(self, tolerated: float) -> list[str]:
        """Return why a plan is needed; single queries that end or are new need none."""
        few = self.drift.queries <= tolerated
        return [
            reason.text
            for reason in self.drift.reasons
            if not (few and reason.code == StaleCode.QUERIES)
        ]


@dataclass(frozen=True)
class _Kept:
    """The drift from a snapshot, the moment of its computation, and the duration (s)."""

    snapshot: str | None
    computed_at: datetime
    took_s: float
    drift: LadderDrift


# By cluster and its time of creation, as a new database reuses ids.
_KEPT: Final[dict[tuple[int, datetime], _Kept]] = {}


def ladder_of(cluster: Cluster, policy: PolicySettings, now: datetime) -> ObservedLadder | None:
    """Return the armed ladder of a cluster with its drift, None if none is armed."""
    row = ArmedLadder.objects.filter(cluster=cluster).select_related("snapshot").first()
    if row is None:
        _KEPT.pop((cluster.pk, cluster.created_at), None)
        return None
    last = last_decision(cluster, LADDER)
    # Time in which no cycle read the ladder does not count.
    waited = last is not None and last.code == STALE and now - last.last_at <= UNSEEN
    return ObservedLadder(
        _drift(cluster, row, policy, now),
        (now - last.first_at).total_seconds() if waited and last is not None else 0.0,
        last is not None and not is_calm(last.code),
    )


def _drift(
    cluster: Cluster, row: ArmedLadder, policy: PolicySettings, now: datetime
) -> LadderDrift:
    key = cluster.pk, cluster.created_at
    kept = _KEPT.get(key)
    if kept is not None and kept.snapshot == row.snapshot_id:
        age = (now - kept.computed_at).total_seconds()
        if 0 <= age < KEEP_TIMES * kept.took_s:
            return kept.drift
    started = time.monotonic()
    drift = drift_of(row, read_input(cluster, now), policy.shedding_drift)
    _KEPT[key] = _Kept(row.snapshot_id, now, time.monotonic() - started, drift)
    return drift


def read_ladder(observed: ClusterObservation) -> LoopReading:
    """Return the reading of the armed ladder."""
    policy = observed.policy
    return ladder_reading(policy, ladder_of(observed.cluster, policy, observed.now))


def ladder_reading(policy: PolicySettings, ladder: ObservedLadder | None) -> LoopReading:
    """Return the reading of a ladder: stale for long enough is above the limit."""
    limit = policy.shedding_drift
    if ladder is None:
        return LoopReading(0.0, None, "No shedding plan is enabled")
    number, reasons = ladder.drift.largest, ladder.reasons(limit)
    if not reasons:
        text = f"The enabled shedding plan is up to date: changes of at most {percent(number)}"
        return LoopReading(number, limit, text, near=number > limit * (1 - policy.dead_band))
    text = f"The enabled shedding plan is stale: {'; '.join(reasons)}"
    if ladder.is_trouble or ladder.stale_s >= policy.watch_ladder_s:
        return LoopReading(number, limit, text, trouble=True)
    return LoopReading(number, limit, text, calm=STALE)


# A ladder beyond the limits of a computation is tried again after so long.
AGAIN_S: Final = 3600.0
_LIMITS: Final = frozenset({OutOfMemory.code, OutOfTime.code})
_next_attempt: Final[dict[int, float]] = {}
REFINED: Final = "Costs are measured: the provisional shedding plan is computed again"


@retry
def refine_provisional(cluster: Cluster) -> bool:
    """Replace a provisional ladder by the one of measured costs; return whether there is one.

    An activated rung stays active.
    """
    row = ArmedLadder.objects.filter(cluster=cluster).first()
    if row is None or not row.value.is_provisional:
        return False
    if time.monotonic() < _next_attempt.get(cluster.pk, 0.0):
        return False
    if not read_input(cluster).has_costs:
        return False
    try:
        computed = compute(Cluster.objects.get(pk=cluster.pk))
    except Conflict as conflict:
        # Without rates or queries the provisional ladder stays.
        if conflict.code in _LIMITS:
            _next_attempt[cluster.pk] = time.monotonic() + AGAIN_S
        return False
    if computed.ladder.is_provisional:
        return False
    present = Cluster.objects.get(pk=cluster.pk)
    # What changed since the snapshot makes the append fail.
    present.routing_version = computed.snapshot.version
    least = min(row.value.least, float(len(computed.ladder.rungs)))
    with transaction.atomic():
        snapshot = keep_snapshot(computed.snapshot).digest
        change = TopologyChange(REFINED, reason=row.reason, snapshot=snapshot)
        apply(present, [SetLadder(replace(computed.ladder, least=least))], change)
    return True


def read_capacity(observed: ClusterObservation) -> LoopReading:
    """Return the reading of the load of all nodes together; an armed ladder answers to it."""
    limit = observed.policy.watch_load
    loads = [observed.load(node.index) for node in observed.active]
    capacity = sum(node.capacity for node in observed.active)
    if not capacity or all(load is None for load in loads):
        return LoopReading(None, limit, "No node has reported its load")
    share = sum(load or 0.0 for load in loads) / capacity
    text = f"All nodes together are loaded to {percent(share)} of their capacity"
    if ArmedLadder.objects.filter(cluster=observed.cluster).exists():
        calm = "answered" if share > limit else "within"
        return LoopReading(share, limit, f"{text}; a shedding plan is enabled", calm=calm)
    return above(share, limit, observed.policy.dead_band, text)


LOOPS: Final = (
    WatchLoop(
        CAPACITY, "all nodes together beyond their capacity", 4, read_capacity, PEAK_LOAD.name,
        lambda policy: policy.watch_load,
    ),
    WatchLoop(
        LADDER, "an enabled shedding plan for other rates, costs or queries", 70,
        read_ladder, prepare=refine_provisional, confirm=confirm_ladder, title="shedding plan",
    ),
)  # fmt: skip
