"""Samples of a cluster in a time range, at a resolution for charts; their roll-ups and deletion."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Max

from controlplane.errors import Invalid
from controlplane.models import Cluster, MeasurePoint, MetricSample
from controlplane.telemetry import measure_points
from controlplane.telemetry.samples import Sample, moment_of, rolled_up

# A chart of about 1200 pixels shows no more points than this.
MAX_ROWS = 900
# Samples of a response of the API: a week of those of 60 s.
MAX_READ = 10_100
# How far back each resolution is kept.
KEPT = {1: timedelta(hours=1), 10: timedelta(days=1), 60: timedelta(days=30)}
RESOLUTIONS = tuple(KEPT)
# A bucket is complete when a later sample is there, or after this while nothing comes.
BUCKET_PATIENCE = timedelta(seconds=60)
CHUNK = 500


def samples(
    cluster: Cluster, start: datetime, end: datetime, resolution: int | None = None
) -> list[dict[str, Any]]:
    """Return the samples with start <= t < end, oldest first.

    Without a resolution the finest is taken that is kept that long and gives at most 900 rows; if
    even the coarsest gives more than `MAX_READ`, samples at equal distances are.
    """
    chosen = resolution or fitting_resolution(start, end)
    rows = _values(cluster, chosen).filter(t__gte=start, t__lt=end).order_by("t")
    step = 1 if resolution else -(-rows.count() // MAX_READ)
    if step > 1:
        return _every(step, rows)
    return list(rows.values_list("values", flat=True))


def _every(step: int, rows: Any) -> list[dict[str, Any]]:
    """Return one of `step` samples in a row: values are much larger than ids."""
    ids = list(rows.values_list("pk", flat=True))[::step]
    chunks = (rows.filter(pk__in=ids[i : i + CHUNK]) for i in range(0, len(ids), CHUNK))
    return [values for chunk in chunks for values in chunk.values_list("values", flat=True)]


def require_readable(start: datetime, end: datetime, resolution: int | None) -> None:
    """Raise `Invalid` if a time range has more samples than a response may have."""
    chosen = resolution or fitting_resolution(start, end)
    kept = max(timedelta(0), end - max(start, datetime.now(UTC) - KEPT[chosen]))
    rows = kept.total_seconds() / chosen
    if rows > MAX_READ:
        text = f"{rows:,.0f} samples are too many, at most {MAX_READ:,}: request a shorter range"
        raise Invalid({"start": [text]})


def fitting_resolution(start: datetime, end: datetime) -> int:
    """Return the finest resolution that covers a time range in at most 900 rows."""
    now = datetime.now(UTC)
    for resolution, kept in KEPT.items():
        is_kept = now - start <= kept + timedelta(seconds=5)
        if is_kept and (end - start).total_seconds() / resolution <= MAX_ROWS:
            return resolution
    return RESOLUTIONS[-1]


def since(cluster: Cluster, t_ms: int) -> list[dict[str, Any]]:
    """Return the samples after t_ms (ms since the epoch), oldest first, the newest 900 at most.

    This is what a browser missed: raw samples where they reach back far enough.
    """
    end = datetime.now(UTC) + timedelta(minutes=1)
    start = max(_moment(t_ms), end - KEPT[60])
    chosen = fitting_resolution(start, end)
    rows = _values(cluster, chosen).filter(t__gt=start).order_by("-t")[:MAX_ROWS]
    return list(rows.values_list("values", flat=True))[::-1]


def latest_values(cluster: Cluster) -> dict[str, Any] | None:
    """Return the newest raw sample, None before the first."""
    newest: dict[str, Any] | None = (
        _values(cluster, 1).order_by("-t").values_list("values", flat=True).first()
    )
    return newest


def _values(cluster: Cluster, resolution: int) -> Any:
    return MetricSample.objects.filter(cluster=cluster, resolution=resolution)


def _moment(t_ms: int) -> datetime:
    """Return the moment, the earliest possible one if it is outside of the calendar."""
    try:
        return datetime.fromtimestamp(t_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)


def roll_up(now: datetime) -> int:
    """Write the 10 s and 60 s samples whose buckets are complete; returns how many."""
    clusters, roll_ups = Cluster.objects.all(), RESOLUTIONS[1:]
    return sum(_roll_up(cluster, seconds, now) for cluster in clusters for seconds in roll_ups)


def prune_samples(now: datetime) -> int:
    """Delete the samples that are kept no longer; returns how many."""
    deleted = 0
    for resolution, kept in KEPT.items():
        old = MetricSample.objects.filter(resolution=resolution, t__lt=now - kept)
        deleted += old.order_by().delete()[0]
        points = MeasurePoint.objects.filter(resolution=resolution, t__lt=now - kept)
        deleted += points.order_by().delete()[0]
    return deleted


def _roll_up(cluster: Cluster, seconds: int, now: datetime) -> int:
    raw = _values(cluster, MetricSample.Resolution.RAW)
    newest = raw.aggregate(t=Max("t"))["t"]
    if newest is None:
        return 0
    done = _values(cluster, seconds).aggregate(t=Max("t"))["t"]
    begin = done + timedelta(seconds=seconds) if done else moment_of(0)
    end = _bucket(max(newest, now - BUCKET_PATIENCE), seconds)
    buckets: dict[datetime, list[Sample]] = {}
    for t, values in raw.filter(t__gte=begin, t__lt=end).order_by("t").values_list("t", "values"):
        buckets.setdefault(_bucket(t, seconds), []).append(values)
    created = [
        MetricSample(
            cluster=cluster,
            resolution=seconds,
            t=bucket,
            values=rolled_up(samples, round(bucket.timestamp() * 1000)),
        )
        for bucket, samples in buckets.items()
    ]
    MetricSample.objects.bulk_create(created, ignore_conflicts=True, batch_size=CHUNK)
    measure_points.write(cluster, seconds, buckets)
    return len(created)


def _bucket(t: datetime, seconds: int) -> datetime:
    return moment_of(int(t.timestamp()) // seconds * seconds * 1000)
