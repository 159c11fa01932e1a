"""An index of tasks by node and query, in the place of the one by node."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Queries of nodes are counted from the new index alone."""

    dependencies = [("controlplane", "0057_audit_of_policies")]

    operations = [
        migrations.AddIndex(
            model_name="task",
            index=models.Index(fields=["node", "query"], name="task_by_node"),
        ),
        migrations.AlterField(
            model_name="task",
            name="node",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="tasks",
                to="controlplane.node",
            ),
        ),
    ]
