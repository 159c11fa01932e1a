"""Roll-ups of samples: means over 10 s and 60 s, and deletion of expired samples."""

from datetime import datetime, timedelta

from django.db.models import Max

from controlplane.models import Cluster, MetricSample
from controlplane.telemetry.samples import Sample, moment_of, rolled_up
from controlplane.telemetry.time_series import KEPT

# A bucket is complete when a later sample is there, or after this while nothing comes.
BUCKET_PATIENCE = timedelta(seconds=60)
ROLL_UPS = (MetricSample.Resolution.TEN_SECONDS, MetricSample.Resolution.MINUTE)
CHUNK = 500


def roll_up(now: datetime) -> int:
    """Write the 10 s and 60 s samples whose buckets are complete; returns how many."""
    clusters = Cluster.objects.all()
    return sum(_roll_up(cluster, seconds, now) for cluster in clusters for seconds in ROLL_UPS)


def prune(now: datetime) -> int:
    """Delete the samples that are kept no longer; returns how many."""
    deleted = 0
    for resolution, kept in KEPT.items():
        old = MetricSample.objects.filter(resolution=resolution, t__lt=now - kept)
        deleted += old.order_by().delete()[0]
    return deleted


def _roll_up(cluster: Cluster, seconds: int, now: datetime) -> int:
    rows = MetricSample.objects.filter(cluster=cluster)
    raw = rows.filter(resolution=MetricSample.Resolution.RAW)
    newest = raw.aggregate(t=Max("t"))["t"]
    if newest is None:
        return 0
    done = rows.filter(resolution=seconds).aggregate(t=Max("t"))["t"]
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
    return len(created)


def _bucket(t: datetime, seconds: int) -> datetime:
    return moment_of(int(t.timestamp()) // seconds * seconds * 1000)
