"""Counts of dropped records alone: the windows themselves have what was kept of them."""

from typing import Any

from django.db import migrations


def delete_periods_without_drops(apps: Any, _: Any) -> None:
    """Delete the rows that only counted records that arrived."""
    apps.get_model("controlplane", "EdgePeriod").objects.filter(dropped=0).delete()


class Migration(migrations.Migration):
    """Without the records that arrived, and the ranges in which they were counted."""

    dependencies = [("controlplane", "0059_late_records")]

    operations = [
        migrations.RunPython(delete_periods_without_drops, migrations.RunPython.noop),
        migrations.RemoveField(model_name="edgeperiod", name="arrived"),
        migrations.DeleteModel(name="CountedRange"),
    ]
