"""Store the forecast of the streams of each cluster, which the watch loop computes."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("controlplane", "0055_processor_time")]

    operations = [
        migrations.CreateModel(
            name="StoredForecast",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False,
                                           verbose_name="ID")),
                ("computed_at", models.DateTimeField()),
                ("starts_at", models.DateTimeField(blank=True, null=True)),
                ("seconds", models.PositiveIntegerField()),
                ("capacity", models.FloatField(default=0.0)),
                ("basis", models.CharField(max_length=200)),
                ("moves", models.JSONField(default=list)),
                ("data", models.BinaryField()),
                ("cluster", models.OneToOneField(
                    on_delete=django.db.models.deletion.CASCADE, related_name="stored_forecast",
                    to="controlplane.cluster",
                )),
            ],
            options={"ordering": ["cluster"]},
        ),
    ]  # fmt: skip
