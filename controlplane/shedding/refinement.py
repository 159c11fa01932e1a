"""Replacement of a provisional ladder as soon as costs are measured, without a person or a plan.

An operator who arms a provisional ladder wants the measured one: weights and floors are the same.
"""

import time
from dataclasses import replace
from typing import Final

from django.db import transaction

from controlplane.errors import Conflict
from controlplane.models import ArmedLadder, Cluster
from controlplane.planning.shedding.observation import read_work
from controlplane.planning.snapshots import keep_snapshot
from controlplane.processes.errors import OutOfMemory, OutOfTime
from controlplane.shedding.arming import compute
from controlplane.shedding.staleness import is_measured
from controlplane.topology.apply import Change, apply
from controlplane.topology.versions import retry
from controlplane.wire.routing.cluster_actions import SetLadder

# A ladder beyond the limits of a computation is tried again after so long.
AGAIN_S: Final = 3600.0
_LIMITS: Final = frozenset({OutOfMemory.code, OutOfTime.code})
_next_attempt: Final[dict[int, float]] = {}
REFINED: Final = "Costs are measured: the provisional ladder is computed again"


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
    if not any(is_measured(node) for node in read_work(cluster).nodes):
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
        change = Change(REFINED, reason=row.reason, snapshot=snapshot)
        apply(present, [SetLadder(replace(computed.ladder, least=least))], change)
    return True
