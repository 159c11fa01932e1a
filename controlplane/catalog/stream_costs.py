"""What streams cost: their mean rate and the size of their records, stored for lists."""

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import connection

from controlplane.models import Cluster, Stream
from controlplane.pagination.chunks import update_rows
from controlplane.telemetry import arrivals
from controlplane.wire.errors import LogUnavailable
from controlplane.wire.log import open_log

# The mean rate is over this time.
MEAN_OVER: Final = timedelta(hours=1)


def record_stream_costs(cluster: Cluster, now: datetime) -> int:
    """Store mean rate and bytes per record of a cluster's streams; return how many were written.

    The size is that of the newest block in the log, in the format of the log; a stream without
    blocks keeps the last one.
    """
    known = dict(Stream.objects.filter(cluster=cluster).values_list("pk", "record_bytes"))
    ids = sorted(known)
    if not ids:
        return 0
    means = arrivals.rates_between(cluster, now - MEAN_OVER, now, ids).means
    sizes = known | _record_bytes(cluster, ids)
    adapted = connection.ops.adapt_datetimefield_value(now)
    rows = [(means.get(pk, 0.0), sizes[pk], adapted, pk) for pk in ids]
    update_rows(Stream, "mean_rate = %s, record_bytes = %s, measured_at = %s", rows)
    return len(rows)


def _record_bytes(cluster: Cluster, ids: list[int]) -> dict[int, float]:
    """Return the bytes of a record by stream, of those with a block in the log."""
    try:
        newest = open_log(cluster.log_url, cluster.slug, settings.REDIS_URL).newest_entries(ids, 1)
    except LogUnavailable:
        return {}
    return {
        stream: len(entries[-1].block) / entries[-1].records
        for stream, entries in newest.items()
        if entries and entries[-1].records
    }
