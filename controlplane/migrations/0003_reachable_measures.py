"""What placement reaches in the place of a lower bound, and the policies' limit above it."""

import django.db.models.deletion
from django.db import migrations, models

_NAME = "watch_replication"


def above_the_reachable(apps, schema_editor):
    """Read a stored multiple of the lower bound as a share above the best reachable."""
    for row in apps.get_model("controlplane", "Policy").objects.filter(settings__has_key=_NAME):
        row.settings[_NAME] = round(min(100.0, max(0.0, row.settings[_NAME] - 1.0)), 9)
        row.save(update_fields=["settings"])


def times_the_bound(apps, schema_editor):
    """Read a stored share above the best reachable as a multiple of the lower bound."""
    for row in apps.get_model("controlplane", "Policy").objects.filter(settings__has_key=_NAME):
        row.settings[_NAME] += 1.0
        row.save(update_fields=["settings"])


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0002_no_better_plan'),
    ]

    operations = [
        migrations.CreateModel(
            name='ReachableMeasures',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveBigIntegerField()),
                ('computed_at', models.DateTimeField()),
                ('took_s', models.FloatField()),
                ('factor', models.FloatField()),
                ('replication_factor', models.FloatField()),
                ('imbalance', models.FloatField()),
                ('fullest', models.FloatField()),
                ('cluster', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='reachable', to='controlplane.cluster')),
            ],
        ),
        migrations.DeleteModel(
            name='ReplicationBound',
        ),
        migrations.RunPython(above_the_reachable, times_the_bound),
    ]
