"""Store the estimated processor time with each query, so that lists sort and filter by it."""

from django.db import migrations, models

_AGE = [
    "cluster", "-submitted_at", "-id", "state", "records_per_s", "latency_ms", "state_bytes",
    "shared_with", "processor_percent", "source_rate", "window_s", "task_count",
]  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [("controlplane", "0054_second_factors")]

    operations = [
        migrations.AddField("query", "processor_percent", models.FloatField(default=0.0)),
        migrations.RemoveIndex("query", "query_by_age"),
        migrations.AddIndex("query", models.Index(fields=_AGE, name="query_by_age")),
        migrations.AddIndex(
            "query",
            models.Index(
                fields=["cluster", "processor_percent", "id", "state"], name="query_by_processor"
            ),
        ),
    ]
