"""Samples of a cluster in a time range, at a resolution for charts."""

from datetime import UTC, datetime, timedelta
from typing import Any

from controlplane.models import Cluster, MetricSample

RESOLUTIONS = (1, 10, 60)
# A chart of about 1200 pixels shows no more points than this.
MAX_ROWS = 900
# How far back each resolution is kept.
KEPT = {1: timedelta(hours=1), 10: timedelta(days=1), 60: timedelta(days=30)}
RECENT = timedelta(minutes=5)


def samples(
    cluster: Cluster, start: datetime, end: datetime, resolution: int | None = None
) -> list[dict[str, Any]]:
    """Return the samples with start <= t < end, oldest first.

    Without a resolution the finest is taken that is kept that long and gives at most 900 rows.
    """
    chosen = resolution or fitting_resolution(start, end)
    rows = _values(cluster, chosen).filter(t__gte=start, t__lt=end).order_by("t")
    return list(rows.values_list("values", flat=True))


def fitting_resolution(start: datetime, end: datetime) -> int:
    """Return the finest resolution that covers a time range in at most 900 rows."""
    now = datetime.now(UTC)
    for resolution in RESOLUTIONS:
        kept = now - start <= KEPT[resolution] + timedelta(seconds=5)
        if kept and (end - start).total_seconds() / resolution <= MAX_ROWS:
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


def recent(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the samples of the last five minutes, oldest first."""
    end = datetime.now(UTC)
    return samples(cluster, end - RECENT, end + timedelta(seconds=5), resolution=1)


def _values(cluster: Cluster, resolution: int) -> Any:
    return MetricSample.objects.filter(cluster=cluster, resolution=resolution)


def _moment(t_ms: int) -> datetime:
    """Return the moment, the earliest possible one if it is outside of the calendar."""
    try:
        return datetime.fromtimestamp(t_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)
