"""Stored series of clusters: samples, arrivals of streams, skew of keys, and measures."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from controlplane.models import Cluster, Node, Query, SeriesPeriod
from controlplane.planning.measured.costs import COST_SERIES
from controlplane.telemetry import series, time_series
from controlplane.telemetry.arrivals import period_of
from controlplane.telemetry.grid import Grid, Period, grid_of
from controlplane.telemetry.series import code_of

# The series that measures are means of.
_OF_MEASURES = {
    "latency_p95": "p95", "imbalance": "imbalance", "replication_factor": "rf",
    "replication_limit": "rf_limit", "records_in": "arrived", "input_kept": "kept",
    "records_dropped": "dropped",
}  # fmt: skip


def grid_of_samples(
    names: Sequence[str], samples: Sequence[Mapping[str, Any]], nodes: int = 0
) -> Grid:
    """Return series of samples, one a second if they have no times."""
    rows = [{"t": 1000 * second, **sample} for second, sample in enumerate(samples)]
    return grid_of(names, [part for row in rows for part in time_series.parts_of(row, 1)], nodes)


def batches_of(samples: Sequence[Mapping[str, Any]]) -> Grid:
    """Return the series of costs of samples."""
    return grid_of_samples(COST_SERIES, samples)


def add_sample(cluster: Cluster, t: datetime, values: Mapping[str, Any], seconds: int = 1) -> None:
    """Store a sample, in place of that of the time."""
    series.stored([cluster.pk], ("", "node", "split"), seconds).filter(t=t).delete()
    nodes = Node.objects.filter(cluster=cluster).order_by("index")
    capacity = [node.capacity if node.active else None for node in nodes]
    values = {"capacity": capacity[: len(values.get("loads", ()))], **values}
    time_series.record(cluster, [{**values, "t": 1000 * t.timestamp()}], seconds)


def all_samples(cluster: Cluster, seconds: int = 1) -> list[dict[str, Any]]:
    """Return the stored samples, oldest first."""
    end = datetime(2100, 1, 1, tzinfo=UTC)
    return time_series.samples(cluster, datetime.fromtimestamp(0, UTC), end, seconds)


def change_newest(cluster: Cluster, **values: Any) -> None:
    """Change values of the newest sample."""
    newest = all_samples(cluster)[-1]
    add_sample(cluster, stored_times(cluster, "cluster", 1)[-1], newest | values)


def add_measures(cluster: Cluster, t: datetime, measures: Mapping[str, Any], seconds: int) -> None:
    """Store the sample of a period with these measures of a cluster."""
    values = {_OF_MEASURES[name]: v for name, v in measures.items() if name in _OF_MEASURES}
    nodes = list(Node.objects.filter(cluster=cluster).order_by("index"))
    node, loads = measures.get("node"), [0.0] * len(nodes)
    if node is not None:
        # Without an imbalance, the other nodes have no load.
        uneven, most = measures.get("imbalance"), measures["node_load"]
        above = most if uneven is None else uneven * len(nodes) / (len(nodes) - 1)
        most = max(most, above)
        loads = [(most - above * (each.index != node)) * each.capacity for each in nodes]
    add_sample(cluster, t, values | {"loads": loads, "delivered": 1.0}, seconds)


def add_arrivals(
    cluster: Cluster,
    t: datetime,
    arrived: Mapping[int, float],
    unread: float = 0.0,
    seconds: int = 10,
    measured_s: float | None = None,
) -> None:
    """Store the records that arrived of streams in a period, by id."""
    streams = np.array(sorted(arrived))
    counts = np.array([float(arrived[stream]) for stream in streams.tolist()])
    waiting = np.full(len(streams), float(unread))
    period = period_of(t, streams, counts, waiting, seconds, measured_s)
    series.record(cluster, [period], update=True)


def add_skews(
    query: Query, skews: Iterable[tuple[datetime, float]], seconds: int = 10,
    grouping: str = "key", top_share: float = 0.5, records: float = 9.0,
) -> None:  # fmt: skip
    """Store the skew of a query in periods, as pairs of start and imbalance."""
    for t, imbalance in skews:
        values = {
            "key_top_share": top_share, "key_top10_share": 0.6, "key_imbalance": imbalance,
            "key_records": records, "key_grouping": float(code_of(grouping)),
        }  # fmt: skip
        rows = series.stored([query.cluster_id], ["query"], seconds).filter(t=t)
        others = [period for _, period in series.periods_of(rows)]
        ids = np.concatenate([*(period.subjects for period in others), [float(query.pk)]])
        order = np.argsort(ids)
        columns = {
            name: np.concatenate([*(period.values[name] for period in others), [value]])[order]
            for name, value in values.items()
        }
        period = Period("query", seconds, t, float(seconds), ids[order], columns)
        series.record(query.cluster, [period], update=True)


def stored_times(cluster: Cluster, scope: str, seconds: int) -> list[datetime]:
    """Return the starts of the stored periods of a scope."""
    rows = SeriesPeriod.objects.filter(
        cluster=cluster, scope=SeriesPeriod.Scope[scope.upper()], seconds=seconds
    )
    return list(rows.order_by("t").values_list("t", flat=True))


def even_times(end: datetime, seconds: int, count: int) -> list[datetime]:
    """Return the starts of the last even periods before a moment, oldest first."""
    last = series.start_of(end, seconds)
    return [last - timedelta(seconds=seconds * (count - place)) for place in range(count)]
