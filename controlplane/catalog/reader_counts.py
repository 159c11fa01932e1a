"""The number of live queries that read each stream, stored with the stream.

Lists of 10,000 streams sort and filter by it; to count 200,000 reads takes a second. The
services that start or end queries change it in their transaction, by as much as they change.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from django.db.models import Count, QuerySet

from controlplane.models import Cluster, QueryStream, Stream
from controlplane.models.query import LIVE_STATES
from controlplane.pagination.chunks import chunks, update_rows


def add_readers(counts: Mapping[int, int]) -> None:
    """Add numbers of live readers to streams by id, in the caller's transaction."""
    # In the order of their ids: transactions that change the same streams do not deadlock.
    changes = [(count, stream) for stream, count in sorted(counts.items()) if count]
    update_rows(Stream, "reader_count = reader_count + %s", changes)


def subtract_readers(queries: Sequence[int]) -> None:
    """Subtract queries that are live no longer from the streams that they read."""
    ended: Counter[int] = Counter()
    for ids in chunks(queries):
        ended.update(dict(_counts(QueryStream.objects.filter(query__in=ids))))
    add_readers({stream: -count for stream, count in ended.items()})


def recount(cluster: Cluster) -> None:
    """Store the numbers of readers of all streams of a cluster, for rows written without services.

    No query of the cluster may start or end meanwhile.
    """
    live = QueryStream.objects.filter(query__state__in=LIVE_STATES, query__cluster=cluster)
    counted = dict(_counts(live))
    stored = Stream.objects.filter(cluster=cluster).values_list("pk", "reader_count")
    add_readers({stream: counted.get(stream, 0) - count for stream, count in stored})


def _counts(rows: QuerySet[QueryStream]) -> QuerySet[QueryStream, tuple[int, int]]:
    counted = rows.order_by().values("stream").annotate(n=Count("pk"))
    return counted.values_list("stream", "n")
