"""Numbers of live readers of streams and rates of the streams of queries, stored for lists."""

from typing import Any

from django.db import migrations, models
from django.db.models import Count, F, OuterRef, Q, Subquery, Sum
from django.db.models.functions import Coalesce

_LIVE = ("pending", "running", "ending")


def fill(apps: Any, schema_editor: Any) -> None:
    """Count the readers, and add up the rates."""
    names = ("Stream", "Query", "QueryStream")
    stream, query, reading = (apps.get_model("controlplane", name) for name in names)
    live = Q(query__state__in=_LIVE)
    readers = reading.objects.filter(live, stream=OuterRef("pk")).order_by().values("stream")
    count = Subquery(readers.annotate(n=Count("pk")).values("n"))
    stream.objects.update(reader_count=Coalesce(count, 0))
    rate = Coalesce(F("stream__rate"), F("stream__declared_rate"), 0.0)
    read = reading.objects.filter(query=OuterRef("pk")).order_by().values("query")
    total = Subquery(read.annotate(n=Sum(rate)).values("n"))
    query.objects.update(source_rate=Coalesce(total, 0.0))


# Indexes of queries: the columns after the cluster, without and with those that filters use.
_FIGURES = ["records_per_s", "latency_ms", "state_bytes", "shared_with"]
_AGE = ["cluster", "-submitted_at", "-id"]
_FILTERED = ["state", *_FIGURES, "source_rate", "window_s", "task_count"]
_NAMES = ["query_by_records", "query_by_latency", "query_by_size", "query_by_sharing"]


def _replaced(name: str, fields: list[str]) -> list[Any]:
    """Return the operations that replace an index of queries."""
    return [
        migrations.RemoveIndex("query", name),
        migrations.AddIndex("query", models.Index(fields=fields, name=name)),
    ]


class Migration(migrations.Migration):
    dependencies = [("controlplane", "0052_latency_of_rungs")]

    operations = [
        migrations.AddField("stream", "reader_count", models.IntegerField(default=0)),
        migrations.AddField("query", "source_rate", models.FloatField(default=0.0)),
        migrations.RunPython(fill, migrations.RunPython.noop),
        *_replaced("query_by_age", [*_AGE, *_FILTERED]),
        *(
            operation
            for name, figure in zip(_NAMES, _FIGURES, strict=True)
            for operation in _replaced(name, ["cluster", figure, "id", "state"])
        ),
    ]
