"""Name the constraints of drop rules after edges, and the reverse name of a query's aggregator."""

from django.db import migrations, models
from django.db.models import PROTECT, Q


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0028_plain_names'),
    ]

    operations = [
        migrations.RemoveConstraint("drop", "drop_split_arc_once"),
        migrations.RemoveConstraint("drop", "drop_input_arc_once"),
        migrations.AddConstraint(
            "drop",
            models.UniqueConstraint(
                fields=("stream", "query"),
                condition=Q(query__isnull=False),
                name="drop_split_edge_once",
            ),
        ),
        migrations.AddConstraint(
            "drop",
            models.UniqueConstraint(
                fields=("stream",), condition=Q(query__isnull=True), name="drop_input_edge_once"
            ),
        ),
        migrations.AlterField(
            "query",
            "aggregator",
            models.ForeignKey(
                "controlplane.node",
                on_delete=PROTECT,
                null=True,
                blank=True,
                related_name="aggregated_queries",
            ),
        ),
    ]
