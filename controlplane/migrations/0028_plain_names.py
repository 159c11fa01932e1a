"""Name columns as the code does: drop rule, key grouping, aggregator, incarnation."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0027_plans_of_actions'),
    ]

    operations = [
        migrations.RenameField("drop", "shed", "rule"),
        migrations.RenameField("query", "scheme", "key_grouping"),
        migrations.RenameField("query", "merge_node", "aggregator"),
        migrations.RenameField("query", "run", "incarnation"),
    ]
