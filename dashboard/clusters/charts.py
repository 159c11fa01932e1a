"""The charts of a cluster as JSON: figures, samples and the heat map of a time range."""

from typing import Final

import numpy as np
from django.http import HttpResponse, JsonResponse

from algorithms.vocabulary import Floats
from controlplane.alerts.measures import AlertMeasure
from controlplane.alerts.readings import ClusterReadings, cluster_readings
from controlplane.models import Cluster
from controlplane.telemetry.arrivals.catching_up import oldest_s, waited
from controlplane.telemetry.grid import Grid
from controlplane.telemetry.series import fitting_seconds, read
from dashboard.clusters.events import plan_marks_of
from dashboard.figures.buckets import (
    LINES,
    LOADS,
    POINTS,
    NodeSeries,
    bucket_seconds,
    has_minutes,
    heat_of,
    last_minute,
    line_columns,
)
from dashboard.figures.cluster import ChartLimits, cluster_figures
from dashboard.guards import PageRequest, cluster_page
from dashboard.range_parameters import requested_range
from dashboard.time_range import TimeRange

# Rows of the heat map; of more nodes, the fullest ones are shown.
MOST_NODES: Final = 64
# Starts and outages in a range, the newest ones.
MOST_WAITED: Final = 10


@cluster_page
def charts(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Return figures, samples in columns and the heat map, for live updates, too."""
    time_range = requested_range(request)
    series = read(cluster, (*LINES, *LOADS), time_range.start, time_range.end)
    step = bucket_seconds(time_range, POINTS)
    heat = heat_of(series, time_range, shown_nodes(cluster, series))
    start, end = time_range.milliseconds
    limits = chart_limits(readings_in(cluster, time_range))
    plans = plan_marks_of(cluster, time_range)
    answer = {
        "figures": cluster_figures(limits, plans, minutes=has_minutes(step)),
        "columns": line_columns(series, step),
        "waited": waited_in(cluster, time_range, series),
        "outage_ms": round(1000 * oldest_s(cluster.trigger_ms)),
        "recent": last_minute(series) if time_range.live else [],
        "resolution": step,
        "start": start,
        "end": end,
        "live": time_range.live,
        "missing": missing_text(cluster, time_range),
        "heat": {
            "start": heat.start,
            "step": heat.step,
            "nodes": [[node.index, node.name, node.capacity] for node in heat.nodes],
            "shares": heat.shares,
        },
    }
    return JsonResponse(answer, json_dumps_params={"separators": (",", ":")})


def waited_in(cluster: Cluster, time_range: TimeRange, series: Grid) -> list[float]:
    """Return the times in ms of the newest samples whose records waited for a start."""
    seconds = fitting_seconds(time_range.start, time_range.end)
    times = series.times[waited(series, cluster.trigger_ms, seconds)]
    newest: list[float] = np.round(1000 * times[-MOST_WAITED:]).tolist()
    return newest


def missing_text(cluster: Cluster, time_range: TimeRange) -> str:
    """Return why a chart of a time range may have no samples."""
    if not time_range.live:
        return "No samples are stored for this time range."
    if cluster.desired == Cluster.Desired.STOPPED:
        return "No samples in this time range: the cluster is stopped."
    return "No samples in this time range yet. The first comes with the next micro-batch."


def readings_in(cluster: Cluster, time_range: TimeRange) -> ClusterReadings:
    """Return the readings of a cluster: of the last minute, or of a whole past range."""
    if time_range.live:
        return cluster_readings(cluster)
    return cluster_readings(cluster, time_range.length, time_range.end)


def chart_limits(readings: ClusterReadings) -> ChartLimits:
    """Return the limits that the charts draw."""
    return ChartLimits(
        latency_ms=readings[AlertMeasure.LATENCY].limit,
        imbalance=readings[AlertMeasure.IMBALANCE].limit,
        reachable=readings[AlertMeasure.REPLICATION].reachable,
    )


def shown_nodes(cluster: Cluster, series: Grid) -> list[NodeSeries]:
    """Return the nodes of the heat map by index: all, or the fullest of the newest sample."""
    nodes = [
        NodeSeries(*values)
        for values in cluster.nodes.order_by("index").values_list("index", "name", "capacity")
    ]
    if len(nodes) <= MOST_NODES:
        return nodes
    loads = np.nan_to_num(series.loads)[-1] if len(series) else np.zeros(0)
    fullest = sorted(nodes, key=lambda node: _share(loads, node), reverse=True)[:MOST_NODES]
    return sorted(fullest, key=lambda node: node.index)


def _share(loads: Floats, node: NodeSeries) -> float:
    return float(loads[node.index]) / node.capacity if node.index < len(loads) else 0.0
