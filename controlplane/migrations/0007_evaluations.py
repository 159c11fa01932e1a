"""The measured rate of a query is named after what it counts: evaluations."""

from django.db import migrations, models

_AGE = (
    "cluster", "-submitted_at", "-id", "state", "evaluations_per_s", "latency_ms", "state_bytes",
    "shared_with", "processor_percent", "source_rate", "window_s", "task_count",
)  # fmt: skip


class Migration(migrations.Migration):
    """Rename the column, and create the indexes with it again."""

    dependencies = [("controlplane", "0006_worst_limit")]

    operations = [
        migrations.RemoveIndex("query", "query_by_age"),
        migrations.RemoveIndex("query", "query_by_records"),
        migrations.RenameField("query", "records_per_s", "evaluations_per_s"),
        migrations.AddIndex("query", models.Index(fields=_AGE, name="query_by_age")),
        migrations.AddIndex(
            "query",
            models.Index(
                fields=["cluster", "evaluations_per_s", "id", "state"], name="query_by_evaluations"
            ),
        ),
    ]
