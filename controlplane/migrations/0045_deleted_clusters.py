"""Slugs of deleted clusters, until the agent has removed their checkpoints."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("controlplane", "0044_routine_actions")]

    operations = [
        migrations.CreateModel(
            name="DeletedCluster",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.SlugField(max_length=40, unique=True)),
                ("deleted_at", models.DateTimeField()),
            ],
            options={"ordering": ["deleted_at"]},
        ),
    ]
