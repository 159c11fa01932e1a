"""The measures that have limits: the only declaration of their titles, units and limits."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from controlplane.models import Cluster, ReachableMeasures
from controlplane.planning.measures import FULLEST, IMBALANCE, REPLICATION_FACTOR, Measure
from controlplane.policies.grades import Grade
from controlplane.policies.measure_limits import measure_limits
from controlplane.policies.settings import PolicySettings
from controlplane.telemetry.arrivals.catching_up import oldest_s


class AlertMeasure(StrEnum):
    """The measures of a cluster, by the names of `telemetry.measures.MeasureMeans`."""

    LATENCY = "latency_p95"
    LOAD = "node_load"
    IMBALANCE = "imbalance"
    REPLICATION = "replication_factor"
    RECORDS = "records_in"
    KEPT = "input_kept"
    AGE = "data_age"


@dataclass(frozen=True, slots=True)
class LimitInput:
    """What a limit depends on; `reachable`: None before it was computed."""

    cluster: Cluster
    policy: PolicySettings
    reachable: ReachableMeasures | None


@dataclass(frozen=True, slots=True)
class MeasureKind:
    """A measure: title, unit (ms, share, ratio, records/s or s), limit and the policy's setting.

    `setting`: "" for a limit that follows from the cluster. `is_lower`: values below the limit
    exceed it. `alert`: what its alert states. `placed`: the name of the measure of plans by which
    placement changes it, "" if it does not.
    """

    measure: AlertMeasure
    title: str
    unit: str
    setting: str = ""
    limit: Callable[[LimitInput], float | None] = lambda _: None
    is_lower: bool = False
    alert: str = ""
    placed: str = ""

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

    def reachable(self, given: LimitInput) -> float | None:
        """Return the best value that placement reaches, None if it is not known."""
        known = given.reachable is not None and self.placed
        return float(getattr(given.reachable, self.placed)) if known else None

    def near(self, limit: float, dead_band: float) -> float:
        """Return the value from which the limit is near."""
        if self.is_lower:
            return min(1.0, limit + (1 - limit) * dead_band)
        return limit * (1 - dead_band)


def _limit_of(measure: Measure) -> Callable[[LimitInput], float | None]:
    return lambda given: measure_limits(given.policy, given.reachable).get(measure.name)


KINDS: Final = {
    kind.measure: kind
    for kind in (
        MeasureKind(
            AlertMeasure.LATENCY, "Latency p95", "ms", "latency_ms",
            lambda given: float(given.policy.latency_ms), alert="Latency p95 above limit",
        ),
        MeasureKind(
            AlertMeasure.LOAD, "Fullest node", "share", "watch_load",
            _limit_of(FULLEST), alert="Node above capacity limit", placed=FULLEST.name,
        ),
        MeasureKind(
            AlertMeasure.IMBALANCE, "Imbalance", "share", "watch_imbalance",
            _limit_of(IMBALANCE), alert="Imbalance above limit", placed=IMBALANCE.name,
        ),
        MeasureKind(
            AlertMeasure.REPLICATION, "Replication factor", "ratio", "watch_replication",
            _limit_of(REPLICATION_FACTOR), alert="Replication factor above limit",
            placed=REPLICATION_FACTOR.name,
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
