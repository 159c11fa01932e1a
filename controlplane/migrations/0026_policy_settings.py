"""Store the settings of a policy as one JSON value: `controlplane.policies` declares them."""

from datetime import time

from django.db import migrations, models

SETTINGS = (
    "auto_kinds", "auto_asked", "auto_moves", "auto_bytes", "auto_gain", "auto_days", "auto_from",
    "auto_until", "auto_record", "auto_record_runs", "auto_record_error", "approvers", "four_eyes",
    "starts", "tolerated_rates", "tolerated_ended", "tolerated_new", "node_moves", "cluster_moves",
    "bytes_per_s", "pause_ms", "latency_ms", "watch", "watch_imbalance", "watch_replication",
    "dead_band", "cooldown_s",
)


def collect(apps, schema_editor):
    """Copy the columns of every policy into its settings."""
    alias = schema_editor.connection.alias
    for row in apps.get_model("controlplane", "Policy").objects.using(alias).all():
        values = {name: getattr(row, name) for name in SETTINGS}
        row.settings = {
            name: value.isoformat() if isinstance(value, time) else value
            for name, value in values.items()
        }
        row.save(update_fields=["settings"])


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0025_nodes_in_the_routing_table'),
    ]

    operations = [
        migrations.AddField(
            model_name='policy',
            name='settings',
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.RunPython(collect, migrations.RunPython.noop),
        *(migrations.RemoveField(model_name='policy', name=name) for name in SETTINGS),
    ]
