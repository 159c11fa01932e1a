"""The figures of a sample: the only list of their names, titles, units and roll-ups.

Samples, roll-ups, Prometheus metrics and charts are derived from it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class RollUp(StrEnum):
    """How the figures of several samples become one; values that are missing do not count."""

    MEAN = "mean"
    # Of latencies: a mean would hide a peak.
    MAX = "max"
    LAST = "last"


class Unit(StrEnum):
    """The units of figures; times since the epoch are in ms."""

    RATE = "records/s"
    MS = "ms"
    RATIO = "ratio"
    BYTES = "bytes"
    COUNT = "count"
    TIME = "time"
    POSITION = "position"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a sample: `name` in JSON, `title` for people, unit, and roll-up.

    `per_node`: a list with one value per node by index. `metric`: its name in Prometheus, where
    times are in seconds; empty for none.
    """

    name: str
    title: str
    unit: Unit
    roll_up: RollUp = RollUp.MEAN
    per_node: bool = False
    metric: str = ""

    @property
    def metric_factor(self) -> float:
        """Return by what to multiply a value for Prometheus."""
        return 0.001 if self.unit is Unit.MS else 1.0


FIGURES: Final = (
    Figure("version", "Routing version", Unit.COUNT, RollUp.LAST),
    Figure("in", "Records into the log", Unit.RATE, metric="records_in_per_second"),
    Figure("read", "Records read", Unit.RATE, metric="records_read_per_second"),
    Figure(
        "delivered", "Records delivered to nodes", Unit.RATE, metric="records_delivered_per_second"
    ),
    Figure("rf", "Replication factor", Unit.RATIO, metric="replication_factor"),
    Figure("imbalance", "Imbalance of load over capacity", Unit.RATIO, metric="imbalance"),
    Figure("p50", "Latency, median", Unit.MS, metric="latency_p50_seconds"),
    Figure("p95", "Latency, 95th percentile", Unit.MS, RollUp.MAX, metric="latency_p95_seconds"),
    Figure("p99", "Latency, 99th percentile", Unit.MS, RollUp.MAX, metric="latency_p99_seconds"),
    Figure("batch_ms", "Duration of the micro-batch", Unit.MS, metric="batch_seconds"),
    Figure(
        "loads", "Records received by a node", Unit.RATE, per_node=True,
        metric="node_records_per_second",
    ),
    Figure(
        "busy", "Share of time that a node computes", Unit.RATIO, per_node=True,
        metric="node_busy_ratio",
    ),
    Figure("tasks", "Tasks on a node", Unit.COUNT, RollUp.LAST, per_node=True, metric="node_tasks"),
    Figure("late", "Late records", Unit.RATE, metric="records_late_per_second"),
    Figure("dropped", "Dropped records", Unit.RATE),
    Figure("waiting", "Records in the nodes' backlogs", Unit.COUNT, RollUp.LAST),
    Figure("state_bytes", "State of all tasks", Unit.BYTES, RollUp.LAST, metric="state_bytes"),
    Figure("end", "Position in the log", Unit.POSITION, RollUp.LAST),
    Figure("event_ms", "Newest event time", Unit.TIME, RollUp.LAST),
    Figure("emitted_ms", "Time of the sample", Unit.TIME, RollUp.LAST),
)  # fmt: skip


def names_of(roll_up: RollUp) -> frozenset[str]:
    """Return the names of the figures with a roll-up."""
    return frozenset(figure.name for figure in FIGURES if figure.roll_up is roll_up)
