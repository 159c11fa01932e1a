"""The measures of clusters over a window: what tiles, alerts, lines and pages of a fleet show."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from controlplane.telemetry.grid import RAW, Grid
from controlplane.telemetry.series import fitting_seconds, read_all, stored

# The window of every present value: tiles, headlines, alerts, monitors and costs show its means.
PRESENT: Final = timedelta(seconds=60)
TEN_S: Final = 10
# Samples are stored within this time after the end of their micro-batch.
_STORED: Final = timedelta(seconds=2)
MINUTE_S: Final = 60
# What was measured for less than the first time does not show the load of a cluster: it starts with
# a burst. Samples older than the second time are those of another start.
_STARTS: Final = PRESENT
_RECALLS: Final = timedelta(minutes=30)
# The measures, by the series that they are means of.
_MEANS: Final = {
    "latency_p95": "p95", "imbalance": "imbalance", "replication_factor": "rf",
    "replication_limit": "rf_limit", "records_in": "arrived", "input_kept": "kept",
    "records_dropped": "dropped",
}  # fmt: skip
_SERIES: Final = (*_MEANS.values(), "delivered", "in", "loads", "capacity")
# Periods of a fleet that are read of each cluster for a sum since a visit.
_MOST_OF_SUM: Final = 180


@dataclass(frozen=True, slots=True)
class MeasureMeans:
    """The means of a cluster's measures over a window; None without records.

    `latency_p95` in ms; `records_in`: records/s that arrived in the log; `records_dropped`:
    records/s that drop rules and ladders dropped, each once; `node_load`: load over capacity of the
    fullest node, whose index is `node`; `replication_limit`: the newest limit of the window; the
    others are ratios.
    """

    latency_p95: float | None = None
    node_load: float | None = None
    node: int | None = None
    imbalance: float | None = None
    replication_factor: float | None = None
    replication_limit: float | None = None
    records_in: float | None = None
    input_kept: float | None = None
    records_dropped: float | None = None


def present_end(now: datetime) -> datetime:
    """Return the end of the window of present values: the newest even ten seconds with all samples.

    It stands for ten seconds, so parts of pages that are read one after another have equal values.
    """
    return datetime.fromtimestamp((now - _STORED).timestamp() // TEN_S * TEN_S, UTC)


def new_clusters(clusters: Collection[int], time: datetime) -> set[int]:
    """Return the clusters that were measured for less than a minute up to a time, or not at all."""
    # The first micro-batch may be at the end of its period, and is in no window of a later time.
    until = time - _STARTS
    batches = stored(clusters, [""], RAW).filter(t__lt=until)
    periods = stored(clusters, [""], TEN_S).filter(t__lte=until - timedelta(seconds=TEN_S))
    known = (batches | periods).filter(t__gt=time - _RECALLS)
    return set(clusters) - set(known.values_list("cluster", flat=True).distinct())


def measured_for(cluster: int, now: datetime, most: timedelta) -> timedelta:
    """Return for how long a cluster has been measured until now, at most `most`, also if never."""
    periods = stored([cluster], [""], TEN_S).filter(t__gte=now - most).order_by("t")
    first = periods.values_list("t", flat=True).first()
    return most if first is None else now - first


def shown_seconds(start: datetime, end: datetime, now: datetime | None = None) -> int:
    """Return the length of the periods of which means over a time range are, wherever they stand.

    Tiles, alerts, monitors, explanations and costs have equal values by it.
    """
    return fitting_seconds(start, end, least=TEN_S, now=now)


def means_between(
    clusters: Collection[int], start: datetime, end: datetime
) -> dict[int, tuple[MeasureMeans, MeasureMeans]]:
    """Return by cluster the means of start <= t < end, and of the span of that length before."""
    begin = start - (end - start)
    result = {}
    grids = read_all(clusters, _SERIES, begin, end, shown_seconds(begin, end))
    for cluster, grid in grids.items():
        is_now = (grid.times >= start.timestamp()).astype(np.int64)
        windows = grid.merged(is_now)
        means = _means(windows)
        parts = dict(zip(np.unique(is_now).tolist(), means, strict=True))
        result[cluster] = parts.get(1, MeasureMeans()), parts.get(0, MeasureMeans())
    return result


def lines_between(
    clusters: Collection[int], start: datetime, end: datetime, seconds: int = MINUTE_S
) -> dict[int, list[MeasureMeans]]:
    """Return by cluster the means on an even grid from start to end; all None at gaps."""
    first, stop = (int(t.timestamp()) // seconds for t in (start, end))
    lines = {}
    for cluster, grid in read_all(clusters, _SERIES, start, end, seconds).items():
        even = grid.every(seconds)
        means = dict(zip(even.slots(seconds), _means(even), strict=True))
        lines[cluster] = [means.get(slot, MeasureMeans()) for slot in range(first, stop)]
    return lines


def _means(grid: Grid) -> list[MeasureMeans]:
    """Return the measures of each period."""
    shares = grid.shares
    shares[~(np.nan_to_num(grid["delivered"]) > 0)] = np.nan
    # Of periods without loads, no node is the fullest.
    fullest = np.nan_to_num(shares, nan=-1.0).argmax(axis=1) if shares.shape[1] else None
    columns = {measure: grid[name].tolist() for measure, name in _MEANS.items()}
    result = []
    for place in range(len(grid)):
        values = {name: _known(column[place]) for name, column in columns.items()}
        load = None if fullest is None else _known(shares[place, fullest[place]])
        node = None if fullest is None or load is None else int(fullest[place])
        result.append(MeasureMeans(**values, node_load=load, node=node))
    return result


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def dropped_since(clusters: Collection[int], start: datetime) -> int:
    """Return the records that drop rules and ladders of clusters dropped since a moment."""
    end = datetime.now(UTC)
    seconds = fitting_seconds(start, end, most=_MOST_OF_SUM, least=MINUTE_S)
    grids = read_all(clusters, ("dropped",), start, end, seconds)
    return round(sum(float(np.nansum(g["dropped"] * g.measured_s)) for g in grids.values()))
