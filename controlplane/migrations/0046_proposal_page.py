"""What the page of a proposal needs: summary, comments, planned steps, and the counterfactual."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("controlplane", "0045_deleted_clusters"),
    ]

    operations = [
        migrations.AddField(
            model_name="execution",
            name="planned_step_s",
            field=models.FloatField(default=0.0),
        ),
        migrations.AddField(
            model_name="execution",
            name="planned_stops",
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.AddField(
            model_name="ledgerentry",
            name="without",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="ledgerentry",
            name="without_error",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="proposal",
            name="obstacles",
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.AddField(
            model_name="proposal",
            name="summary",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="proposal",
            name="unexplained",
            field=models.CharField(blank=True, max_length=20),
        ),
        migrations.CreateModel(
            name="ProposalComment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("author", models.CharField(max_length=150)),
                ("at", models.DateTimeField()),
                ("text", models.CharField(max_length=2000)),
                (
                    "proposal",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="comments",
                        to="controlplane.proposal",
                    ),
                ),
            ],
            options={
                "ordering": ["proposal", "at", "id"],
            },
        ),
    ]
