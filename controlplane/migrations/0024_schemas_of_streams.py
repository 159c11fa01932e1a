"""Give the streams of earlier releases the schema that their records had.

All streams had the same columns then, whatever was declared of them. The routing table gets the
schemas with a version of its own, which is published when Weir starts.
"""

from django.db import migrations

BEFORE = {
    "columns": [
        {"name": "ts", "type": "timestamp(ms)", "nullable": False},
        {"name": "car", "type": "int32", "nullable": False},
        {"name": "x", "type": "int32", "nullable": False},
        {"name": "y", "type": "int32", "nullable": False},
        {"name": "speed", "type": "int32", "nullable": True},
    ],
    "event_time": "ts",
    "watermark_delay_s": 120.0,
    # What was replayed could be of any time.
    "max_future_s": 315_360_000.0,
    "idle_after_s": 300.0,
}


def declare(apps, schema_editor):
    """Store the schema of each stream that has no typed one, and a routing version with it."""
    alias = schema_editor.connection.alias
    clusters = apps.get_model("controlplane", "Cluster").objects.using(alias)
    streams = apps.get_model("controlplane", "Stream").objects.using(alias)
    versions = apps.get_model("controlplane", "RoutingVersion").objects.using(alias)
    for cluster in clusters.all():
        mine = streams.filter(cluster=cluster).order_by("pk")
        untyped = [pk for pk, row in mine.values_list("pk", "schema") if "columns" not in row]
        if not untyped:
            continue
        for begin in range(0, len(untyped), 500):
            streams.filter(pk__in=untyped[begin : begin + 500]).update(schema=BEFORE)
        version = cluster.routing_version + 1
        clusters.filter(pk=cluster.pk).update(routing_version=version)
        ops = [{"op": "schema", "stream": pk, "schema": BEFORE} for pk in untyped]
        versions.create(
            cluster=cluster, version=version, ops=ops, reason="Schemas of streams (upgrade)"
        )


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0023_stream_schemas'),
    ]

    operations = [
        migrations.RunPython(declare, migrations.RunPython.noop),
    ]
