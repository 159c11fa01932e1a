"""Alerts, means of measures, bounds of replication and visits of users."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("controlplane", "0046_proposal_page"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ReplicationBound",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("version", models.PositiveBigIntegerField()),
                ("bound", models.FloatField()),
                ("factor", models.FloatField()),
                ("computed_at", models.DateTimeField()),
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="replication_bound",
                        to="controlplane.cluster",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Visit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("last_end", models.DateTimeField(blank=True, null=True)),
                ("seen_at", models.DateTimeField()),
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="visit",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("subject", models.CharField(max_length=30)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("firing", "Firing"),
                            ("cleared", "Cleared"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("value", models.FloatField(blank=True, null=True)),
                ("worst", models.FloatField(blank=True, null=True)),
                ("limit", models.FloatField(blank=True, null=True)),
                ("node", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("detail", models.CharField(blank=True, max_length=300)),
                ("since", models.DateTimeField()),
                ("fired_at", models.DateTimeField(blank=True, null=True)),
                ("within_since", models.DateTimeField(blank=True, null=True)),
                ("cleared_at", models.DateTimeField(blank=True, null=True)),
                ("evaluated_at", models.DateTimeField()),
                ("acknowledged_by", models.CharField(blank=True, max_length=150)),
                ("acknowledged_at", models.DateTimeField(blank=True, null=True)),
                ("note", models.CharField(blank=True, max_length=500)),
                ("silenced_by", models.CharField(blank=True, max_length=150)),
                ("silenced_until", models.DateTimeField(blank=True, null=True)),
                ("silence_reason", models.CharField(blank=True, max_length=500)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alerts",
                        to="controlplane.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ["-since", "-id"],
                "indexes": [
                    models.Index(fields=["cluster", "-since"], name="alert_by_cluster"),
                    models.Index(fields=["cleared_at"], name="alert_by_end"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("cleared_at", None)),
                        fields=("cluster", "subject"),
                        name="alert_open_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("cleared_at", None),
                            ("cleared_at__gte", models.F("since")),
                            _connector="OR",
                        ),
                        name="alert_clears_after_it_begins",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MeasurePoint",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "resolution",
                    models.PositiveSmallIntegerField(choices=[(10, "Ten Seconds"), (60, "Minute")]),
                ),
                ("t", models.DateTimeField()),
                ("latency_p95", models.FloatField(null=True)),
                ("node_load", models.FloatField(null=True)),
                ("node", models.PositiveSmallIntegerField(null=True)),
                ("imbalance", models.FloatField(null=True)),
                ("replication_factor", models.FloatField(null=True)),
                ("records_in", models.FloatField(null=True)),
                ("input_kept", models.FloatField(null=True)),
                ("records_dropped", models.FloatField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="measure_points",
                        to="controlplane.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ["cluster", "resolution", "t"],
                "indexes": [models.Index(fields=["resolution", "t"], name="measure_point_by_age")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "resolution", "t"), name="measure_point_once"
                    )
                ],
            },
        ),
    ]
