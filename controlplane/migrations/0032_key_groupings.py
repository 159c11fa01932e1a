"""Name key groupings as algorithms.partitioning does, and store their parameters.

The grouping that an earlier release called two_choices is partial key grouping: two_choices names
another one now. The routing versions of clusters with such a query get a version with the present
names, which is published when Weir starts.
"""

from django.db import migrations, models

NAMES = {"hash": "key", "two_choices": "partial_key"}
PARTIAL_KEY = '{"grouping":"partial_key"}'


def rename(apps, schema_editor):
    """Write the present names into queries and routing tables."""
    alias = schema_editor.connection.alias
    queries = apps.get_model("controlplane", "Query").objects.using(alias)
    for earlier, name in NAMES.items():
        queries.filter(key_grouping=earlier).update(key_grouping=name)
    clusters = apps.get_model("controlplane", "Cluster").objects.using(alias)
    versions = apps.get_model("controlplane", "RoutingVersion").objects.using(alias)
    # Routed queries have tasks.
    routed = queries.filter(key_grouping="partial_key", tasks__isnull=False).distinct()
    for cluster in clusters.filter(routing_version__gt=0):
        ids = list(routed.filter(cluster=cluster).order_by("pk").values_list("pk", flat=True))
        if not ids:
            continue
        version = cluster.routing_version + 1
        clusters.filter(pk=cluster.pk).update(routing_version=version)
        versions.create(
            cluster=cluster,
            version=version,
            ops=[
                {"op": "set_key_grouping", "query": pk, "key_grouping": PARTIAL_KEY} for pk in ids
            ],
            reason="Names of key groupings (upgrade)",
        )


def rename_back(apps, schema_editor):
    """Write the earlier names into queries; groupings without one cannot be renamed."""
    queries = apps.get_model("controlplane", "Query").objects.using(schema_editor.connection.alias)
    for earlier, name in NAMES.items():
        queries.filter(key_grouping=name).update(key_grouping=earlier)


class Migration(migrations.Migration):

    dependencies = [
        ('controlplane', '0031_admission'),
    ]

    operations = [
        migrations.AddField(
            model_name='query',
            name='key_grouping_parameters',
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.RunPython(rename, rename_back),
    ]
