"""The nodes of a cluster with their means over a time range."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Final

from django.db.models import Count
from django.http import HttpResponse

from algorithms.vocabulary import Floats
from controlplane import numbers
from controlplane.alerts.measures import KINDS, AlertMeasure
from controlplane.alerts.readings import AlertReading, ClusterReadings
from controlplane.models import Cluster, Node, Task
from controlplane.telemetry.grid import Grid
from controlplane.telemetry.measures import TEN_S
from controlplane.telemetry.series import fitting_seconds, read
from dashboard.clusters.charts import readings_in
from dashboard.csv_files import csv_file
from dashboard.figures.buckets import LOADS, NodeSeries, heat_of
from dashboard.frame.readings import shown_value
from dashboard.guards import PageRequest, cluster_page
from dashboard.range_parameters import requested_range
from dashboard.time_range import TimeRange

# Rows of the table; the file has all.
MOST: Final = 100
_SERIES: Final = ("node_p95", "node_waiting", "node_state", *LOADS)
# Load over capacity of a whole bar.
BAR_TOP: Final = 1.2


@dataclass(frozen=True)
class NodeTableRow:
    """A node: mean load (deliveries/s) and p95 (ms) of the span, newest backlog and state (bytes).

    `line`: its load/capacity over the range; `grade`, `latency_grade`: by the policy's limits.
    """

    node: Node
    queries: int
    load: float | None
    p95: float | None
    backlog: float | None
    state: float | None
    line: Sequence[float | None]
    grade: str
    latency_grade: str

    @property
    def share(self) -> float | None:
        """Return load over capacity."""
        return None if self.load is None else self.load / self.node.capacity

    @property
    def bar_width(self) -> float:
        """Return the width of the bar of load over capacity in %."""
        return round(100 * min(1.0, (self.share or 0.0) / BAR_TOP), 1)

    @property
    def label(self) -> str:
        """Return the line of the loads in words."""
        known = [value for value in self.line if value is not None]
        if not known:
            return f"{self.node.name}: no loads in this range"
        least, most = numbers.percent(min(known)), numbers.percent(max(known))
        return f"{self.node.name}: load from {least} to {most} of capacity"


@dataclass(frozen=True)
class NodeTable:
    """The rows of the nodes, the limit of their load, and how many nodes there are."""

    rows: Sequence[NodeTableRow]
    limit: float | None
    total: int

    @property
    def limit_x(self) -> float:
        """Return the place of the limit in bars, in %."""
        return round(100 * min(1.0, (self.limit or 1.0) / BAR_TOP), 1)


def node_table(
    cluster: Cluster, time_range: TimeRange, readings: ClusterReadings, most: int = MOST
) -> NodeTable:
    """Return the nodes by index: the first of many."""
    nodes = list(cluster.nodes.order_by("index"))
    series = read(cluster, _SERIES, time_range.start, time_range.end, nodes=cluster.slots)
    shown = nodes[:most]
    drawn = [NodeSeries(node.index, node.name, node.capacity) for node in shown]
    lines = heat_of(series, time_range, drawn).shares
    hosted = dict(
        Task.objects.filter(node__in=[node.pk for node in shown])
        .order_by()
        .values_list("node")
        .annotate(Count("query", distinct=True))
    )
    # The periods of a long range are longer than the window of now.
    window = _window(cluster, readings) if time_range.live else series.window()
    rows = [
        _row(node, hosted.get(node.pk, 0), window, line, readings)
        for node, line in zip(shown, lines, strict=True)
    ]
    return NodeTable(rows, readings[AlertMeasure.LOAD].limit, len(nodes))


def node_bars(cluster: Cluster, readings: ClusterReadings) -> NodeTable:
    """Return the nodes as `node_table` does, without their queries and lines."""
    nodes, window = list(cluster.nodes.order_by("index")), _window(cluster, readings)
    rows = [_row(node, 0, window, (), readings) for node in nodes[:MOST]]
    return NodeTable(rows, readings[AlertMeasure.LOAD].limit, len(nodes))


def _window(cluster: Cluster, readings: ClusterReadings) -> Grid:
    """Return the series over the time of the readings, in periods as those of the tiles."""
    begin, end = readings.end - readings.period, readings.end
    seconds = fitting_seconds(begin, end, least=TEN_S)
    return read(cluster, _SERIES, begin, end, seconds, nodes=cluster.slots).window()


def _row(
    node: Node,
    queries: int,
    window: Grid,
    line: Sequence[float | None],
    readings: ClusterReadings,
) -> NodeTableRow:
    latency, backlog, state, load = (
        _value(values[0], node.index)
        for values in (
            window["node_p95"], window["node_waiting"], window["node_state"], window.loads
        )
    )  # fmt: skip
    if readings[AlertMeasure.LOAD].value is None and load is None:
        load = shown_value(readings, AlertMeasure.LOAD)
    share = None if load is None else load / node.capacity
    return NodeTableRow(
        node=node,
        queries=queries,
        load=load,
        p95=latency,
        backlog=backlog,
        state=state,
        line=line,
        grade=_grade(readings, readings[AlertMeasure.LOAD], share),
        latency_grade=_grade(readings, readings[AlertMeasure.LATENCY], latency),
    )


def _grade(readings: ClusterReadings, reading: AlertReading, value: float | None) -> str:
    kind = KINDS[reading.measure]
    return kind.grade(value, reading.limit, readings.policy.dead_band).value


def _value(values: Floats, index: int) -> float | None:
    known = index < len(values) and not isnan(values[index])
    return float(values[index]) if known else None


@cluster_page
def nodes_csv(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return all nodes with their means over the range as CSV."""
    time_range = requested_range(request)
    table = node_table(cluster, time_range, readings_in(cluster, time_range), most=cluster.slots)
    header = [
        "node", "name", "active", "capacity_deliveries_per_s", "load_deliveries_per_s",
        "latency_p95_ms", "backlog_deliveries", "queries", "state_bytes",
    ]  # fmt: skip
    rows = [
        [row.node.index, row.node.name, row.node.active, row.node.capacity, row.load, row.p95,
         row.backlog, row.queries, row.state]
        for row in table.rows
    ]  # fmt: skip
    return csv_file(f"{cluster.slug}-nodes.csv", header, rows)
