"""Totals of the late records of streams and queries."""

from collections import Counter
from collections.abc import Sequence

from django.db import connection

from controlplane.models import Cluster, Query, Stream
from controlplane.telemetry.samples import Row, moment_of


def count(cluster: Cluster, rows: Sequence[Row]) -> None:
    """Add the late records of telemetry rows, in the transaction that stores the relay's position.

    `late_at` becomes the time of the newest row.
    """
    late_at = connection.ops.adapt_datetimefield_value(moment_of(rows[-1]["emitted_ms"]))
    for model, name in ((Stream, "late_streams"), (Query, "late_queries")):
        totals: Counter[str] = Counter()
        for row in rows:
            totals.update(row.get(name, {}))
        # In the order of their ids, as all updates of many rows.
        changes = sorted((int(pk), records) for pk, records in totals.items())
        table = connection.ops.quote_name(model._meta.db_table)  # noqa: SLF001 - public API
        with connection.cursor() as cursor:
            cursor.executemany(
                f"UPDATE {table} SET late_records = late_records + %s, late_at = %s"  # noqa: S608
                " WHERE id = %s AND cluster_id = %s",
                [(records, late_at, pk, cluster.pk) for pk, records in changes],
            )
