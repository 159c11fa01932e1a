"""Check the Spark master of a cluster against the setting WEIR_DESTINATIONS."""

from django.db import migrations, models

import controlplane.models.cluster


class Migration(migrations.Migration):
    """Change the check of a field; the database stays as it is."""

    dependencies = [("controlplane", "0042_audit_chain")]

    operations = [
        migrations.AlterField(
            model_name="cluster",
            name="master",
            field=models.CharField(
                default="local[2]",
                max_length=200,
                validators=[controlplane.models.cluster.valid_master],
            ),
        ),
    ]
