"""Means of a cluster's measures per bucket of time, in narrow rows: pages of many clusters and
long ranges read them instead of samples.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial
from operator import mul
from statistics import fmean
from typing import Any, Final

from django.db.models import Avg, BooleanField, ExpressionWrapper, Q, Sum

from controlplane.models import Cluster, MeasurePoint, MetricSample, Node
from controlplane.telemetry.arrivals.catching_up import load_of
from controlplane.telemetry.samples import Sample

TEN_S: Final = MeasurePoint.Resolution.TEN_SECONDS.value
MINUTE_S: Final = MeasurePoint.Resolution.MINUTE.value
# Points of 10 s are kept for a day.
_TEN_S_KEPT: Final = timedelta(hours=24)
# Longer spans have enough points of a minute.
_TEN_S_LONGEST: Final = timedelta(hours=2)
_CHUNK: Final = 500


@dataclass(frozen=True, slots=True)
class MeasureMeans:
    """The means of a cluster's measures, as in `MeasurePoint`; None without records."""

    latency_p95: float | None = None
    node_load: float | None = None
    node: int | None = None
    imbalance: float | None = None
    replication_factor: float | None = None
    records_in: float | None = None
    input_kept: float | None = None
    records_dropped: float | None = None


# The columns of points that have means: all but the index of the fullest node.
COLUMNS: Final = (
    "latency_p95", "node_load", "imbalance", "replication_factor", "records_in", "input_kept",
    "records_dropped",
)  # fmt: skip


def write(cluster: Cluster, seconds: int, buckets: Mapping[datetime, Sequence[Sample]]) -> None:
    """Store one point per bucket of samples; existing points are unchanged."""
    if not buckets:
        return
    capacities = capacities_of([cluster.pk]).get(cluster.pk, {})
    rows = [
        MeasurePoint(cluster=cluster, resolution=seconds, t=t, **asdict(means_of(own, capacities)))
        for t, own in buckets.items()
    ]
    MeasurePoint.objects.bulk_create(rows, ignore_conflicts=True, batch_size=_CHUNK)


def capacities_of(clusters: Collection[int]) -> dict[int, dict[int, float]]:
    """Return the records/s of each active node by cluster and index."""
    rows = Node.objects.filter(cluster__in=clusters, active=True).order_by()
    result: dict[int, dict[int, float]] = {}
    for cluster, index, capacity in rows.values_list("cluster", "index", "capacity"):
        result.setdefault(cluster, {})[index] = capacity
    return result


def means_of(samples: Sequence[Sample], capacities: Mapping[int, float]) -> MeasureMeans:
    """Return the means over samples; batches without records count in the rate alone.

    `capacities`: records/s of the active nodes by index.
    """
    full = [sample for sample in samples if sample.get("delivered")]
    loads = {
        node: load / capacity
        for node, capacity in capacities.items()
        if (load := _mean(full, partial(_load, node))) is not None
    }
    fullest = max(loads, key=lambda node: loads[node], default=None)
    return MeasureMeans(
        latency_p95=_mean(full, lambda sample: sample.get("p95")),
        node_load=None if fullest is None else loads[fullest],
        node=fullest,
        imbalance=_mean(full, lambda sample: sample.get("imbalance")),
        replication_factor=_mean(full, lambda sample: sample.get("rf")),
        records_in=_rate(samples, "in"),
        input_kept=_mean(full, lambda sample: sample.get("kept")),
        records_dropped=_rate(samples, "dropped", "ladder_dropped"),
    )


def _rate(samples: Sequence[Sample], *names: str) -> float | None:
    """Return the records/s over all samples of the sum of these figures, None without samples."""
    if not samples:
        return None
    seconds = [sample.get("span_s") or 1.0 for sample in samples]
    rates = [sum(sample.get(name) or 0.0 for name in names) for sample in samples]
    return float(sum(map(mul, rates, seconds)) / sum(seconds))


def _load(node: int, sample: Sample) -> float | None:
    return load_of(sample, node)


def _mean(samples: Sequence[Sample], value_of: Callable[[Sample], float | None]) -> float | None:
    values = [value for sample in samples if (value := value_of(sample)) is not None]
    return fmean(values) if values else None


def resolution_of(start: datetime, end: datetime, now: datetime) -> int:
    """Return the seconds of the points that cover a span: 10, or 60 for long or old spans."""
    is_recent = start > now - _TEN_S_KEPT and end - start <= _TEN_S_LONGEST
    return TEN_S if is_recent else MINUTE_S


def means_between(
    clusters: Collection[int], start: datetime, end: datetime, resolution: int
) -> dict[int, tuple[MeasureMeans, MeasureMeans]]:
    """Return by cluster the means of start <= t < end, and of the span of that length before."""
    points = MeasurePoint.objects.filter(
        cluster__in=clusters, resolution=resolution, t__gte=start - (end - start), t__lt=end
    ).order_by()
    now = Q(t__gte=start)
    fullest = _fullest(points.filter(now, node__isnull=False))
    # Two rows of a cluster: half as many expressions for Django to write as with two filters.
    rows = points.annotate(is_now=ExpressionWrapper(now, BooleanField()))
    means: dict[int, dict[bool, MeasureMeans]] = {}
    for cluster, is_now, *values in rows.values_list("cluster", "is_now").annotate(
        *(Avg(name) for name in COLUMNS)
    ):
        node = fullest.get(cluster) if is_now else None
        own = MeasureMeans(**dict(zip(COLUMNS, values, strict=True)), node=node)
        means.setdefault(cluster, {})[bool(is_now)] = own
    empty = MeasureMeans()
    return {
        cluster: (own.get(True, empty), own.get(False, empty)) for cluster, own in means.items()
    }


def _fullest(points: Any) -> dict[int, int]:
    """Return the node that was the fullest one most of the time, weighted by its load."""
    rows = points.values("cluster", "node").annotate(total=Sum("node_load")).order_by("total")
    return {row["cluster"]: row["node"] for row in rows}


def newest_means(
    clusters: Collection[int], start: datetime, end: datetime
) -> dict[int, MeasureMeans]:
    """Return by cluster the means of raw samples of a short span, before its first points."""
    if not clusters:
        return {}
    capacities = capacities_of(clusters)
    rows = MetricSample.objects.filter(
        cluster__in=clusters, resolution=MetricSample.Resolution.RAW, t__gte=start, t__lt=end
    )
    samples: dict[int, list[Sample]] = {}
    for cluster, values in rows.order_by("t").values_list("cluster", "values"):
        samples.setdefault(cluster, []).append(values)
    return {cluster: means_of(own, capacities.get(cluster, {})) for cluster, own in samples.items()}


def lines_between(
    clusters: Collection[int], start: datetime, end: datetime, resolution: int
) -> dict[int, dict[str, list[float | None]]]:
    """Return by cluster and column the means on an even grid from start to end, None at gaps."""
    first = _slot(start, resolution)
    count = max(0, _slot(end, resolution) - first)
    lines: dict[int, dict[str, list[float | None]]] = {
        cluster: {name: [None] * count for name in COLUMNS} for cluster in clusters
    }
    points = MeasurePoint.objects.filter(
        cluster__in=clusters, resolution=resolution, t__gte=start, t__lt=end
    ).order_by()
    for cluster, t, *values in points.values_list("cluster", "t", *COLUMNS):
        slot = _slot(t, resolution) - first
        if 0 <= slot < count:
            for name, value in zip(COLUMNS, values, strict=True):
                lines[cluster][name][slot] = value
    return lines


def _slot(t: datetime, resolution: int) -> int:
    return int(t.timestamp()) // resolution


def dropped_since(clusters: Collection[int], start: datetime) -> int:
    """Return the records that drop rules and ladders of clusters dropped since a moment.

    They count once per edge, to the minute; the last minute is not included.
    """
    points = MeasurePoint.objects.filter(
        cluster__in=clusters, resolution=MINUTE_S, t__gte=start, records_dropped__gt=0
    )
    return round(MINUTE_S * (points.order_by().aggregate(s=Sum("records_dropped"))["s"] or 0.0))
