"""The measures that have limits: the only declaration of their titles, units and limits."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from controlplane.models import Cluster
from controlplane.policies.grades import Grade
from controlplane.policies.settings import PolicySettings
from controlplane.telemetry.arrivals.catching_up import oldest_s

# The least value of a replication factor.
LEAST_REPLICATION: Final = 1.0


class AlertMeasure(StrEnum):
    """The measures of a cluster, by the names of columns of `MeasurePoint` where it has them."""

    LATENCY = "latency_p95"
    LOAD = "node_load"
    IMBALANCE = "imbalance"
    REPLICATION = "replication_factor"
    RECORDS = "records_in"
    KEPT = "input_kept"
    AGE = "data_age"


@dataclass(frozen=True, slots=True)
class LimitInput:
    """What a limit depends on; `bound`: of the replication factor, None before the first one."""

    cluster: Cluster
    policy: PolicySettings
    bound: float | None


@dataclass(frozen=True, slots=True)
class MeasureKind:
    """A measure: title, unit (ms, share, ratio, records/s or s), limit and the policy's setting.

    `setting`: "" for a limit that follows from the cluster. `is_lower`: values below the limit
    exceed it. `alert`: what its alert states.
    """

    measure: AlertMeasure
    title: str
    unit: str
    setting: str = ""
    limit: Callable[[LimitInput], float | None] = lambda _: None
    is_lower: bool = False
    alert: str = ""

    def grade(self, value: float | None, limit: float | None, dead_band: float) -> Grade:
        """Return the level of a value; good without a limit, unknown without a value."""
        if value is None:
            return Grade.UNKNOWN
        if limit is None:
            return Grade.GOOD
        if self.exceeds(value, limit):
            return Grade.BAD
        return Grade.WARN if self.exceeds(value, self.near(limit, dead_band)) else Grade.GOOD

    def exceeds(self, value: float, limit: float) -> bool:
        """Return True if a value is beyond the limit."""
        return value < limit if self.is_lower else value > limit

    def near(self, limit: float, dead_band: float) -> float:
        """Return the value from which the limit is near."""
        if self.is_lower:
            return min(1.0, limit + (1 - limit) * dead_band)
        return limit * (1 - dead_band)


def _replication_limit(given: LimitInput) -> float | None:
    return None if given.bound is None else given.policy.watch_replication * given.bound


KINDS: Final = {
    kind.measure: kind
    for kind in (
        MeasureKind(
            AlertMeasure.LATENCY, "Latency p95", "ms", "latency_ms",
            lambda given: float(given.policy.latency_ms), alert="Latency p95 above limit",
        ),
        MeasureKind(
            AlertMeasure.LOAD, "Fullest node", "share", "watch_load",
            lambda given: given.policy.watch_load, alert="Node above capacity limit",
        ),
        MeasureKind(
            AlertMeasure.IMBALANCE, "Imbalance", "share", "watch_imbalance",
            lambda given: given.policy.watch_imbalance, alert="Imbalance above limit",
        ),
        MeasureKind(
            AlertMeasure.REPLICATION, "Replication factor", "ratio", "watch_replication",
            _replication_limit, alert="Replication factor above limit",
        ),
        MeasureKind(AlertMeasure.RECORDS, "Records in", "records/s"),
        MeasureKind(
            AlertMeasure.KEPT, "Input kept", "share", "watch_kept",
            lambda given: given.policy.watch_kept, is_lower=True, alert="Input kept below limit",
        ),
        MeasureKind(
            AlertMeasure.AGE, "Age of data", "s", alert="No data",
            limit=lambda given: oldest_s(given.cluster.trigger_ms),
        ),
    )
}  # fmt: skip
