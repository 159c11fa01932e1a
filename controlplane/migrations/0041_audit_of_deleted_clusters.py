"""Audit entries stay after their cluster is deleted, with its id: no constraint of the database."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("controlplane", "0040_computations")]

    operations = [
        migrations.AlterField(
            "auditentry",
            "cluster",
            models.ForeignKey(
                blank=True,
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="audit_entries",
                to="controlplane.cluster",
            ),
        ),
    ]
