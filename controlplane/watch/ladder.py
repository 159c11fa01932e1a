"""The staleness of an armed ladder, as the watch loop `ladder` reads it."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from controlplane.models import ArmedLadder, Cluster, Decision
from controlplane.planners.shedding.observation import read_work
from controlplane.planners.shedding.staleness import LadderDrift, StaleCode, drift_of
from controlplane.policies.settings import PolicySettings
from controlplane.watch.codes import is_calm

LADDER: Final = "ladder"
STALE: Final = "stale"
# A staleness that no cycle has read for this time starts again.
UNSEEN: Final = timedelta(seconds=60)
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
    last = Decision.objects.filter(cluster=cluster, loop=LADDER).order_by("-last_at", "-id").first()
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
    drift = drift_of(row, read_work(cluster, now), policy.shedding_drift)
    _KEPT[key] = _Kept(row.snapshot_id, now, time.monotonic() - started, drift)
    return drift
