"""Store the exact length of the windows of each query, in seconds.

This is a migration of its own: PostgreSQL does not change a table whose rows the same transaction
has updated twice.
"""

import json

from django.db import migrations


def write_windows(apps, schema_editor):
    """Store the exact length of the windows, which was rounded up to whole seconds."""
    queries = apps.get_model("controlplane", "Query").objects.using(schema_editor.connection.alias)
    rounded = [
        (pk, exact)
        for pk, text, window_s in queries.order_by().values_list("pk", "text", "window_s")
        if (exact := json.loads(text).get("window_s", 60.0)) != window_s
    ]
    for pk, window_s in rounded:
        queries.filter(pk=pk).update(window_s=window_s)


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0018_one_kind_of_query'),
    ]

    operations = [
        migrations.RunPython(write_windows, migrations.RunPython.noop),
    ]
