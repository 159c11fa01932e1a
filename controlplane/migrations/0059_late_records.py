"""The totals of late records of streams and queries."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Earlier late records are not counted."""

    dependencies = [("controlplane", "0058_task_by_node")]

    operations = [
        *(
            migrations.AddField(model_name=model, name=name, field=field)
            for model in ("query", "stream")
            for name, field in (
                ("late_records", models.BigIntegerField(default=0)),
                ("late_at", models.DateTimeField(blank=True, null=True)),
            )
        ),
        migrations.AddIndex(
            model_name="query",
            index=models.Index(
                condition=models.Q(late_records__gt=0), fields=["cluster"], name="query_late"
            ),
        ),
    ]
