"""The records/s of the streams of each query, stored with the query for lists.

A list of 100,000 queries cannot add up the rates of their streams for each request.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from django.db.models.functions import Coalesce

from controlplane.models import Cluster, Query, QueryStream, Stream
from controlplane.models.query import LIVE_STATES
from controlplane.pagination.chunks import chunks, update_rows

# The measured rate of a stream, else the declared one (records/s).
STREAM_RATE: Final = Coalesce("rate", "declared_rate", 0.0)
# Rates that differ by less than this part are equal.
_TOLERANCE: Final = 0.01


def rates_of_streams(cluster: Cluster, ids: Sequence[int] | None = None) -> dict[int, float]:
    """Return the records/s of the streams of a cluster by id, of all or of some of them."""
    streams = Stream.objects.filter(cluster=cluster).order_by()
    if ids is None:
        return dict(streams.values_list("pk", STREAM_RATE))
    rates: dict[int, float] = {}
    for part in chunks(ids):
        rates |= dict(streams.filter(pk__in=part).values_list("pk", STREAM_RATE))
    return rates


def record_source_rates(cluster: Cluster) -> int:
    """Store the records/s of the streams of live queries; return how many rows were written."""
    rates = rates_of_streams(cluster)
    live = Query.objects.filter(cluster=cluster, state__in=LIVE_STATES).order_by()
    totals: dict[int, float] = defaultdict(float)
    reading = QueryStream.objects.filter(query__cluster=cluster, query__state__in=LIVE_STATES)
    for query, stream in reading.order_by().values_list("query_id", "stream_id"):
        totals[query] += rates.get(stream, 0.0)
    changed = [
        (totals[query], query)
        for query, stored in live.values_list("pk", "source_rate")
        if abs(totals[query] - stored) > _TOLERANCE * max(totals[query], stored)
    ]
    update_rows(Query, "source_rate = %s", changed)
    return len(changed)
