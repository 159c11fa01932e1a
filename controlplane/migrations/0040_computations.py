"""Claims, computing slots and estimates of computations."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("controlplane", "0039_drifting_since")]

    operations = [
        migrations.AddField("labrun", "estimate", models.JSONField(blank=True, default=dict)),
        migrations.AddField("labrun", "error_code", models.CharField(blank=True, max_length=30)),
        migrations.AddField("proposal", "estimate", models.JSONField(blank=True, default=dict)),
        migrations.AddField("proposal", "attempts", models.PositiveIntegerField(default=0)),
        migrations.AddField("proposal", "started_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField("proposal", "beat_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField(
            "proposal", "slot", models.PositiveSmallIntegerField(blank=True, null=True)
        ),
        migrations.AddField("proposal", "error_code", models.CharField(blank=True, max_length=30)),
        migrations.AddConstraint(
            "proposal",
            models.UniqueConstraint(
                condition=models.Q(("slot__isnull", False), ("state", "computing")),
                fields=("slot",),
                name="one_computation_per_slot",
            ),
        ),
    ]
