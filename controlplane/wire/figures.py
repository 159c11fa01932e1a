"""The measured series: the only list of names, titles, units, scopes, and how values merge.

The data plane publishes those of a cluster, its nodes and split nodes in a telemetry row per
micro-batch. The stored periods (`telemetry.series`), Prometheus metrics, charts, watch loops,
alerts and the command line read them by the same names.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final, Literal

# What a series has values of: the cluster, or each of its nodes, split nodes, streams or queries.
Scope = Literal["", "node", "split", "stream", "query"]
SAMPLE_SCOPES: Final[tuple[Scope, ...]] = ("", "node", "split")
# The length in seconds of the periods in which arrivals and skew are counted at first.
ARRIVALS_PERIOD_S: Final = 10
_SAMPLES_KEPT: Final = {
    1: timedelta(hours=1),
    10: timedelta(days=1),
    60: timedelta(days=30),
    300: timedelta(days=30),
}
# How long periods are kept, by their length in seconds; of 1: a micro-batch, however long.
KEPT: Final[Mapping[Scope, Mapping[int, timedelta]]] = {
    **dict.fromkeys(SAMPLE_SCOPES, _SAMPLES_KEPT),
    "stream": {
        ARRIVALS_PERIOD_S: timedelta(hours=2),
        300: timedelta(days=2),
        3600: timedelta(days=90),
    },
    "query": {
        ARRIVALS_PERIOD_S: timedelta(days=1),
        300: timedelta(days=3),
        3600: timedelta(days=30),
    },
}


class RollUp(StrEnum):
    """How the values of several periods become one; values that are missing do not count.

    A mean is weighted by the seconds that were measured in each period, that of a ratio also by its
    denominator: so the mean is the ratio of the means.
    """

    MEAN = "mean"
    MAX = "max"
    LAST = "last"
    SUM = "sum"
    # The imbalance of the means of loads and the last capacities; without these, a mean.
    IMBALANCE = "imbalance"


class Unit(StrEnum):
    """The units of figures; times since the epoch are in ms."""

    RATE = "records/s"
    # A record counts once per node that gets it.
    DELIVERIES = "deliveries/s"
    PARTIALS = "partial results/s"
    MS = "ms"
    RATIO = "ratio"
    BYTES = "bytes"
    BYTE_RATE = "bytes/s"
    COUNT = "count"
    TIME = "time"


class Source(StrEnum):
    """How the value of a sample follows from the telemetry row of its micro-batch."""

    # The value of the row.
    VALUE = "value"
    # The total of the micro-batch per second since the previous one.
    PER_SECOND = "per second"
    # The value in `latency` of the row, which is null without records.
    LATENCY = "latency"
    # Not in the row: the control plane computes it.
    COMPUTED = "computed"


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured series: `name` in rows and JSON, `title` for people, unit, and roll-up.

    `per`: its scope; "node" and "split" have one value per node or split node by index, "stream"
    and "query" by id. `metric`: its name in Prometheus, where times are in seconds; empty for none.
    `label`: a short title for the legend of a chart. `axis`: the title of its axis; empty for the
    unit. `key`: its name in rows; empty for `name`. `over`: of a ratio, the series of its
    denominator. `parts`: the series of which it is computed when periods become one.
    """

    name: str
    title: str
    unit: Unit
    source: Source = Source.VALUE
    roll_up: RollUp = RollUp.MEAN
    per: Scope = ""
    metric: str = ""
    label: str = ""
    axis: str = ""
    key: str = ""
    over: str = ""
    parts: tuple[str, ...] = ()

    @property
    def row_key(self) -> str:
        """Return the name of the figure in telemetry rows."""
        return self.key or self.name

    @property
    def metric_factor(self) -> float:
        """Return by what to multiply a value for Prometheus."""
        return 0.001 if self.unit is Unit.MS else 1.0

    def text(self, value: float) -> str:
        """Return label, value and unit for people."""
        number = f"{value:.3f}" if self.unit is Unit.RATIO else f"{value:,.0f} {self.unit}"
        return f"{self.label or self.title.lower()} {number}"


FIGURES: Final = (
    Figure("version", "Routing version", Unit.COUNT, roll_up=RollUp.LAST),
    Figure(
        "arrived", "Records in", Unit.RATE, Source.COMPUTED, metric="records_in_per_second",
    ),
    # More than arrive while a backlog is worked off.
    Figure(
        "in", "Records read from the log", Unit.RATE, Source.PER_SECOND,
        metric="log_records_read_per_second",
    ),
    Figure(
        "read", "Records read of streams with queries", Unit.RATE, Source.PER_SECOND,
        metric="records_read_per_second",
    ),
    Figure(
        "delivered", "Deliveries to nodes", Unit.DELIVERIES, Source.PER_SECOND,
        metric="deliveries_per_second", label="deliveries",
    ),
    Figure(
        "rf", "Replication factor", Unit.RATIO, Source.COMPUTED, metric="replication_factor",
        axis="delivered / read", over="read",
    ),
    # As it was at the time: it follows what the best placement reaches. None before that is known.
    Figure(
        "rf_limit", "Limit of the replication factor", Unit.RATIO, Source.COMPUTED, RollUp.LAST,
        metric="replication_factor_limit", label="limit",
    ),
    Figure(
        "imbalance", "Imbalance of load over capacity", Unit.RATIO, Source.COMPUTED,
        RollUp.IMBALANCE, metric="imbalance", label="imbalance", axis="of capacity",
        parts=("loads", "capacity", "arrived", "in"),
    ),
    Figure(
        "p50", "Latency, median", Unit.MS, Source.LATENCY, metric="latency_p50_seconds",
        label="p50",
    ),
    Figure(
        "p95", "Latency, 95th percentile", Unit.MS, Source.LATENCY, metric="latency_p95_seconds",
        label="p95",
    ),
    Figure(
        "p99", "Latency, 99th percentile", Unit.MS, Source.LATENCY, metric="latency_p99_seconds",
        label="p99",
    ),
    Figure(
        "batch_ms", "Duration of the micro-batch", Unit.MS, Source.COMPUTED, metric="batch_seconds"
    ),
    # The costs of records are measured by it.
    Figure("work_ms", "From the plan of the micro-batch to its results", Unit.MS),
    Figure(
        "loads", "Deliveries to a node", Unit.DELIVERIES, Source.PER_SECOND, per="node",
        metric="node_deliveries_per_second", label="load",
    ),
    # None of a node that is not active.
    Figure(
        "capacity", "Deliveries that a node can process", Unit.DELIVERIES, Source.COMPUTED,
        RollUp.LAST, per="node", metric="node_capacity_deliveries_per_second",
    ),
    Figure(
        "busy", "Share of time that a node computes", Unit.RATIO, Source.PER_SECOND, per="node",
        metric="node_busy_ratio", axis="of time",
    ),
    Figure(
        "merged", "Partial results merged by an aggregator node", Unit.PARTIALS,
        Source.PER_SECOND, per="node", metric="node_merged_per_second",
    ),
    Figure(
        "merge_busy", "Share of time that an aggregator node merges", Unit.RATIO,
        Source.PER_SECOND, per="node", metric="node_merge_busy_ratio", axis="of time",
    ),
    Figure(
        "tasks", "Tasks on a node", Unit.COUNT, roll_up=RollUp.LAST, per="node",
        metric="node_tasks",
    ),
    Figure(
        "node_waiting", "Deliveries in the backlog of a node", Unit.COUNT, roll_up=RollUp.LAST,
        per="node", metric="node_waiting_deliveries", label="backlog", axis="deliveries",
        key="waiting",
    ),
    # Less than it receives while its backlog grows.
    Figure(
        "node_processed", "Deliveries processed by a node", Unit.DELIVERIES, Source.PER_SECOND,
        per="node", metric="node_processed_per_second", label="processed", key="taken",
    ),
    Figure(
        "node_state", "State of the tasks of a node", Unit.BYTES, roll_up=RollUp.LAST, per="node",
        metric="node_state_bytes", label="state", key="state_bytes",
    ),
    Figure(
        "node_bytes", "Bytes received by a node", Unit.BYTE_RATE, Source.PER_SECOND, per="node",
        metric="node_bytes_per_second", key="bytes",
    ),
    # None of a node without records in the micro-batch.
    Figure(
        "node_p95", "Latency of the records of a node, 95th percentile", Unit.MS, Source.LATENCY,
        per="node", metric="node_latency_p95_seconds", label="p95", key="p95",
    ),
    Figure(
        "split_loads", "Records read by a split node", Unit.RATE, Source.PER_SECOND, per="split",
        metric="split_node_records_per_second",
    ),
    Figure(
        "split_bytes", "Bytes read by a split node", Unit.BYTE_RATE, Source.PER_SECOND, per="split",
        metric="split_node_bytes_per_second", key="bytes",
    ),
    Figure(
        "split_waiting", "Records in the queue of a split node", Unit.COUNT, roll_up=RollUp.LAST,
        per="split", metric="split_node_waiting_records",
    ),
    Figure(
        "split_latency", "Waiting time of a record at a split node", Unit.MS, roll_up=RollUp.MAX,
        per="split", metric="split_node_latency_seconds",
    ),
    Figure(
        "split_utilisation", "Used share of a split node's capacity", Unit.RATIO, per="split",
        metric="split_node_utilisation_ratio", axis="of capacity",
    ),
    Figure("late", "Late records", Unit.RATE, Source.PER_SECOND, metric="records_late_per_second"),
    # A record counts once, however many edges drop it.
    Figure(
        "dropped", "Records dropped by rules and ladders", Unit.RATE, Source.COMPUTED,
        metric="records_dropped_per_second",
    ),
    Figure(
        "kept", "Part of the records read that drop rules keep", Unit.RATIO, Source.COMPUTED,
        metric="input_kept_ratio", over="in",
    ),
    # None without an armed ladder of drop rules. 1.5: halfway between its first two rungs.
    Figure(
        "ladder_position", "Position on the ladder", Unit.RATIO, roll_up=RollUp.MAX,
        metric="ladder_position", axis="rung",
    ),
    Figure(
        "input_factor", "Input over what the cluster can process", Unit.RATIO, roll_up=RollUp.MAX,
        metric="input_factor", label="input factor", axis="of capacity",
    ),
    Figure("waiting", "Deliveries in the nodes' backlogs", Unit.COUNT, roll_up=RollUp.LAST),
    Figure(
        "state_bytes", "State of all tasks", Unit.BYTES, roll_up=RollUp.LAST, metric="state_bytes"
    ),
    Figure("event_ms", "Newest event time", Unit.TIME, roll_up=RollUp.LAST),
    Figure("emitted_ms", "Time of the sample", Unit.TIME, roll_up=RollUp.LAST),
)  # fmt: skip
# Not in samples: counted or computed in even periods.
SERIES: Final = (
    *FIGURES,
    Figure(
        "stream_arrived", "Records that arrived of a stream", Unit.COUNT, Source.COMPUTED,
        RollUp.SUM, per="stream",
    ),
    Figure(
        "stream_unread", "Records of a stream that no split node has read", Unit.COUNT,
        Source.COMPUTED, RollUp.MAX, per="stream",
    ),
    Figure(
        "key_top_share", "Share of the most frequent key", Unit.RATIO, Source.COMPUTED, per="query"
    ),
    Figure(
        "key_top10_share", "Share of the ten most frequent keys", Unit.RATIO, Source.COMPUTED,
        per="query",
    ),
    Figure(
        "key_imbalance", "Imbalance of a query's tasks", Unit.RATIO, Source.COMPUTED, per="query"
    ),
    Figure("key_records", "Records with a key", Unit.RATE, Source.COMPUTED, per="query"),
    # The number of a key grouping.
    Figure(
        "key_grouping", "Key grouping", Unit.COUNT, Source.COMPUTED, RollUp.LAST, per="query"
    ),
)  # fmt: skip
_BY_NAME: Final = {figure.name: figure for figure in SERIES}


def figure_of(name: str) -> Figure:
    """Return the figure of a name. Raises `KeyError`."""
    return _BY_NAME[name]


def with_parts(names: Iterable[str]) -> list[str]:
    """Return series with those that are needed to make one period of several."""
    figures = [figure_of(name) for name in names]
    needed = (name for f in figures for name in (f.name, f.over, *f.parts) if name)
    return list(dict.fromkeys(needed))
