"""Counts of routine actions by tokens, which become one audit entry per period."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("controlplane", "0043_allowed_masters")]

    operations = [
        migrations.CreateModel(
            "RoutineActions",
            [
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("actor", models.CharField(max_length=150)),
                ("token", models.PositiveBigIntegerField()),
                ("action", models.CharField(max_length=60)),
                ("period", models.DateTimeField()),
                ("count", models.PositiveBigIntegerField(default=0)),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("last_object", models.CharField(blank=True, max_length=200)),
                ("address", models.GenericIPAddressField(blank=True, null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="routine_actions",
                        to="controlplane.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ["-period", "id"],
                "verbose_name_plural": "routine actions",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "token", "action", "period"),
                        name="routine_actions_once",
                    )
                ],
            },
        ),
    ]
