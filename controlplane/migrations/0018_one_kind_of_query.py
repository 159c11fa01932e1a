"""Give every query a text, and drop what described a query without one."""

import json

from django.db import migrations, models


def summary(value, window_s):
    """Return the text that computes what a query of value and window_s alone did."""
    aggregates = {
        "count": "count(*)",
        "n": f"count({value})",
        "mean": f"mean({value})",
        "minimum": f"min({value})",
        "maximum": f"max({value})",
    }
    text = {"aggregates": aggregates, "window_s": float(window_s), "key": ["stream"]}
    return json.dumps(text, separators=(",", ":"))


def write_texts(apps, schema_editor):
    """Store the text of each query that has none; there are few different ones.

    Routing versions and snapshots stay as they are: `controlplane.wire.routing.action_json` reads
    them, so that batches planned before the upgrade can be replayed.
    """
    queries = apps.get_model("controlplane", "Query").objects.using(schema_editor.connection.alias)
    plain = queries.filter(text="").order_by()
    for value, window_s in list(plain.values_list("value", "window_s").distinct()):
        plain.filter(value=value, window_s=window_s).update(text=summary(value, window_s))


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0017_batch_limits'),
    ]

    operations = [
        migrations.RunPython(write_texts, migrations.RunPython.noop),
        migrations.AlterField(
            model_name='query',
            name='window_s',
            field=models.FloatField(),
        ),
        migrations.AlterField(
            model_name='query',
            name='text',
            field=models.TextField(),
        ),
        migrations.RemoveField(
            model_name='query',
            name='value',
        ),
    ]
