"""Saved views, bulk actions, costs of queries and streams, and an index of audit entries by time."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("controlplane", "0048_lab_runs_named_and_shared"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="BulkAction",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("end", "End"), ("restore", "Restore")], max_length=10
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "Running"),
                            ("done", "Done"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="running",
                        max_length=10,
                    ),
                ),
                ("filter", models.CharField(blank=True, max_length=500)),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("total", models.PositiveIntegerField(default=0)),
                ("done", models.PositiveIntegerField(default=0)),
                ("failed", models.PositiveIntegerField(default=0)),
                ("last_query", models.PositiveBigIntegerField(default=0)),
                ("requested_by", models.CharField(max_length=150)),
                ("requested_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-requested_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("list", models.CharField(max_length=20)),
                ("name", models.CharField(max_length=60)),
                ("filter", models.CharField(blank=True, max_length=500)),
                ("order", models.CharField(blank=True, max_length=30)),
                ("is_default", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["list", "name"],
            },
        ),
        migrations.AddField(
            model_name="query",
            name="latency_ms",
            field=models.FloatField(default=0.0),
        ),
        migrations.AddField(
            model_name="query",
            name="measured_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="query",
            name="records_per_s",
            field=models.FloatField(default=0.0),
        ),
        migrations.AddField(
            model_name="query",
            name="shared_with",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="query",
            name="state_bytes",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="stream",
            name="mean_rate",
            field=models.FloatField(default=0.0),
        ),
        migrations.AddField(
            model_name="stream",
            name="measured_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="stream",
            name="record_bytes",
            field=models.FloatField(default=0.0),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["-at", "actor", "action", "cluster"], name="audit_by_time"),
        ),
        migrations.AddField(
            model_name="bulkaction",
            name="cluster",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="bulk_actions",
                to="controlplane.cluster",
            ),
        ),
        migrations.AddField(
            model_name="bulkaction",
            name="source",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="restorations",
                to="controlplane.bulkaction",
            ),
        ),
        migrations.AddField(
            model_name="query",
            name="bulk_action",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="queries",
                to="controlplane.bulkaction",
            ),
        ),
        migrations.AddIndex(
            model_name="query",
            index=models.Index(fields=["cluster", "records_per_s", "id"], name="query_by_records"),
        ),
        migrations.AddIndex(
            model_name="query",
            index=models.Index(fields=["cluster", "latency_ms", "id"], name="query_by_latency"),
        ),
        migrations.AddIndex(
            model_name="query",
            index=models.Index(fields=["cluster", "state_bytes", "id"], name="query_by_size"),
        ),
        migrations.AddIndex(
            model_name="query",
            index=models.Index(fields=["cluster", "shared_with", "id"], name="query_by_sharing"),
        ),
        migrations.AddField(
            model_name="savedview",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="saved_views",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddIndex(
            model_name="bulkaction",
            index=models.Index(fields=["cluster", "-requested_at"], name="bulk_action_by_age"),
        ),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.UniqueConstraint(
                fields=("user", "list", "name"), name="saved_view_name_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_default", True)),
                fields=("user", "list"),
                name="saved_view_default_once",
            ),
        ),
    ]
